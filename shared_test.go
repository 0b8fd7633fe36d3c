package tracefix_test

import (
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// A profile that nobody changes can be read and written by many at a time; the race detector looks on.
func TestSharedProfile(t *testing.T) {
	nothingLeft(t)
	f, err := tracefix.Open(t.Context(), httpMore)
	require.NoError(t, err)
	defer f.Close()
	p, err := f.Profile(t.Context(), &tracefix.ReadOptions{Evidence: true, Work: true, Weights: []string{"exceptions"}, Tracks: []string{"activities", "gc", "events", "http", "counters"}})
	require.NoError(t, err)
	tracefix.Repair(p, nil)
	p.DropEvidence()
	var wait sync.WaitGroup
	for _, format := range tracefix.Formats() {
		if format.FromProfile() {
			for range 2 {
				wait.Go(func() { assert.NoError(t, tracefix.Write(io.Discard, p, format.Name, nil), format.Name) })
			}
		}
	}
	for range 2 {
		wait.Go(func() {
			p.Top(profile.TopOptions{})
			p.TopValues(0, 0, false)
			p.Counts()
			for range p.Cuts() {
				continue
			}
			for _, track := range p.Tracks {
				if track.Slices != nil {
					for range track.Slices {
						continue
					}
				}
			}
			for i := range p.Activities.All() {
				p.Activities.Path(i)
			}
			for _, th := range p.Threads {
				for range th.Work.All() {
					break
				}
			}
		})
	}
	wait.Wait()
}
