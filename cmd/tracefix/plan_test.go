package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/batch"
)

// TestPlannedPiece: the piece whose plan told what is to be done is the one that is done.
func TestPlannedPiece(t *testing.T) {
	out := t.TempDir()
	code, _, words := tracefix(t, "batch", "plan", filepath.Join("..", "..", "testdata", "chain.nettrace.zst"), "-o", out, "--do", "http", "--format", "json")
	require.Equal(t, 0, code, words)
	args, piece := planned(context.Background(), []string{"batch", "--piece", "0", "-o", out})
	assert.Equal(t, []string{"batch", "--do=http", "--format=json", "--piece", "0", "-o", out}, args)
	require.NotNil(t, piece)
	var b batch.Config
	require.NoError(t, (&BatchTracesCmd{Piece: "0", Out: out}).part(&b, piece))
	assert.Same(t, piece, b.Manifest)

	_, piece = planned(context.Background(), []string{"batch", "--piece", "0", "-o", out, "--do", "http"})
	assert.Nil(t, piece, "it is said what to do")
	require.NoError(t, (&BatchTracesCmd{Piece: "0", Out: out}).part(&b, piece))
	assert.Equal(t, 0, b.Manifest.Piece)
	code, _, words = tracefix(t, "batch", "--piece", "0", "-o", out)
	require.Equal(t, 0, code, words)
}
