package load

import "context"

func (l *loader) addTracks(ctx context.Context, open Open) error { return nil }
