package samples

import (
	"bytes"
	"context"
	"io"

	"github.com/tracefix/tracefix/internal/input"
)

// A stranger's input: a reader, and its row.
func init() {
	add(format{Format: input.Format{
		Name: "stranger", Called: "a stranger's stacks", Own: "folded",
		Is: func(head []byte) bool { return bytes.HasPrefix(head, []byte("STRANGER\n")) },
	}, read: readStranger})
}

func readStranger(ctx context.Context, r io.Reader, b *builder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, r, int64(len("STRANGER\n"))); err != nil {
		return err
	}
	return readFolded(ctx, r, b)
}
