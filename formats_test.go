package tracefix_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// What a caller does to the list of formats changes nothing for others.
func TestFormatsAreTheCallers(t *testing.T) {
	list := tracefix.Formats()
	first := list[0].Name
	list[0].Name, list[0].Extensions[0] = "mine", ".mine"
	tracefix.FormatNamed(first).Extensions[0] = ".mine"
	tracefix.FormatNamed(first).Weights = 99

	f := tracefix.FormatNamed(first)
	require.NotNil(t, f)
	assert.Equal(t, first, tracefix.Formats()[0].Name)
	assert.NotEqual(t, ".mine", tracefix.Formats()[0].Extensions[0])
	assert.NotEqual(t, ".mine", f.Extensions[0])
	assert.NotEqual(t, 99, f.Weights)
	assert.Nil(t, tracefix.FormatNamed("mine"))
}

// What a caller asks for by mistake is told, and is no empty output and no panic.
func TestWriteTellsMisuse(t *testing.T) {
	p := &profile.Profile{Table: profile.NewTable(), Threads: []*profile.Thread{{TID: 7}}}
	m := p.Table.AddMethod(profile.Method{Name: "Main()"})
	stack := p.Table.Push(0, p.Table.AddFrame(profile.Frame{Method: m}))
	for ms := range int64(3) {
		p.Threads[0].Samples.Append(profile.Sample{Time: ms * 1e6, Stack: stack})
	}
	p.Tracks = []*profile.Track{{Name: "GC", Group: "gc"}} // without slices
	p.Select(profile.Selection{To: 1e9})
	for _, f := range tracefix.Formats() {
		if !f.FromProfile() {
			continue
		}
		var all, none bytes.Buffer
		require.NoError(t, tracefix.Write(&all, p, f.Name, nil))
		require.NoError(t, tracefix.Write(&none, p, f.Name, &tracefix.WriteOptions{Weights: []string{}}), "no weight is time")
		assert.Equal(t, all.String(), none.String(), f.Name)

		err := tracefix.Write(io.Discard, p, f.Name, &tracefix.WriteOptions{Tracks: []string{"cpu", "gc"}})
		if f.Tracks {
			require.NoError(t, err, f.Name)
		} else {
			require.ErrorContains(t, err, "has no place for tracks")
		}
		require.ErrorContains(t, tracefix.Write(io.Discard, &profile.Profile{}, f.Name, nil), "profile.NewTable")
		require.ErrorContains(t, tracefix.Write(io.Discard, nil, f.Name, nil), "profile.NewTable")
	}
}
