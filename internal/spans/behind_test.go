package spans

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/pass"
)

// Where the document ends too early, all events are in the output, at the end of its array, and it
// is one document.
func TestEventsBehind(t *testing.T) {
	in := small(t)
	evs := rawsOf(t, in)
	for _, end := range []string{"]}", "] ,\"otherData\":{}}\n", "]}, "} {
		for _, at := range []int{0, 1, 7, len(evs) / 2, len(evs) - 1} {
			b := append([]raw(nil), evs...)
			b[at].text = end + b[at].text
			for _, plain := range []bool{false, true} {
				var warned []error
				tr := readBytes(t, assemble(t, in, b, ", "), &Options{Log: true, Warn: func(fe *chromium.FormatError, _ int64) { warned = append(warned, fe) }})
				require.NotEmpty(t, warned)
				assert.ErrorIs(t, warned[len(warned)-1], chromium.ErrTrailing)
				assert.ErrorContains(t, warned[len(warned)-1], "read, all else is left out")
				out := rewriteBytes(t, tr, plain)
				require.True(t, json.Valid(out), "%.300s", out)
				got := rawEvents(t, out, "")
				require.Len(t, got, len(evs), "end %q in front of event %d", end, at)
				for i := range got {
					assert.Equal(t, evs[i].text, got[i])
				}
				pass.FixStacks(tr.Profile, 0.9)
				out = rewriteBytes(t, tr, plain)
				require.True(t, json.Valid(out))
				want, _ := repairBytes(t, in, plain)
				assert.Equal(t, rawEvents(t, want, ""), rawEvents(t, out, ""))
				assert.Equal(t, !plain, bytes.Contains(out, []byte(`"tracefix": {"version"`)))
			}
		}
	}
}

// Another trace that was appended has times and threads of its own: the first one is what was read.
func TestAnotherTraceBehind(t *testing.T) {
	in := small(t)
	for _, next := range []string{"\n", "", " \n\t["} {
		var warned []error
		both := append(append(bytes.Clone(in), next...), in...)
		tr := readBytes(t, both, &Options{Log: true, Warn: func(fe *chromium.FormatError, _ int64) { warned = append(warned, fe) }})
		require.Len(t, warned, 1)
		assert.ErrorIs(t, warned[0], chromium.ErrTrailing)
		assert.ErrorContains(t, warned[0], "another trace begins there, and its")
		assert.Equal(t, rawEvents(t, in, ""), rawEvents(t, rewriteBytes(t, tr, true), ""))
	}
}

// Bytes behind the document that hold no event are left out, and what is not UTF-8 is put right.
func TestOneDocument(t *testing.T) {
	in := small(t)
	for name, c := range map[string]struct {
		in   []byte
		told string
	}{
		"bytes behind":  {append(bytes.Clone(in), "\x00\x00{\"a\":1}"...), "left out"},
		"a doubled end": {append(bytes.Clone(in), "]}"...), "left out"},
		"no UTF-8":      {bytes.ReplaceAll(in, []byte("Root"), []byte("R\xffot")), "U+FFFD stands for it"},
	} {
		t.Run(name, func(t *testing.T) {
			var warned []error
			tr := readBytes(t, c.in, &Options{Log: true, Warn: func(fe *chromium.FormatError, _ int64) { warned = append(warned, fe) }})
			require.NotEmpty(t, warned)
			assert.ErrorContains(t, warned[0], c.told)
			pass.FixStacks(tr.Profile, 0.9)
			out := rewriteBytes(t, tr, false)
			require.True(t, json.Valid(out))
			want, _ := repairBytes(t, in, false)
			assert.Len(t, rawEvents(t, out, ""), len(rawEvents(t, want, "")))
		})
	}
}

// Events that stand in no array, or in one without an end, are an array in the output, repaired or not.
func TestOpenForms(t *testing.T) {
	evs := rawsOf(t, small(t))
	var texts []string
	for _, e := range evs {
		texts = append(texts, e.text)
	}
	whole := "[" + strings.Join(texts, ",\n") + "\n]"
	want, _ := repairBytes(t, []byte(whole), false)
	for name, in := range map[string]string{
		"lines":                strings.Join(texts, "\n") + "\n",
		"with commas":          strings.Join(texts, ",\n") + ",\n",
		"an array without end": "[" + strings.Join(texts, ",\n") + ",\n",
	} {
		t.Run(name, func(t *testing.T) {
			tr := readBytes(t, []byte(in), nil)
			assert.Equal(t, whole, string(rewriteBytes(t, tr, false)), "a copy")
			got, _ := repairBytes(t, []byte(in), false)
			assert.Equal(t, string(want), string(got))
		})
	}
}
