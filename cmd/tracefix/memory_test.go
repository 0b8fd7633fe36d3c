package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExplains(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"http", "x.nettrace", "--explain", "--format", "ndjson"}, true},
		{[]string{"activities", "--explain", "x.nettrace"}, true},
		{[]string{"http", "x.nettrace"}, false},
		{[]string{"convert", "x.nettrace", "-o", "x.json"}, false},
	} {
		parser, err := grammar(&CLI{}, c.args)
		require.NoError(t, err)
		kctx, err := parser.Parse(c.args)
		require.NoError(t, err, c.args)
		assert.Equal(t, c.want, explains(kctx), c.args)
	}
}
