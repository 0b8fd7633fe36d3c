package chromium_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// Whatever is inserted and dropped where, also before and as the first event of an array, a copy is
// one JSON document with all that was written.
func TestEveryEdit(t *testing.T) {
	const ours = `{"ph":"i","name":"ours","ts":1,"pid":1,"tid":2}`
	theirs := func(i int) string { return fmt.Sprintf(`{"ph":"i","name":"theirs","ts":%d,"pid":1,"tid":2}`, i) }
	// What fits the window is read all the same.
	large := `{"ph":"i","name":"` + strings.Repeat("large", 60_000) + `","ts":1}`
	edits := []func(w *chromium.Writer, ev *chromium.Event) (n int, err error){
		func(w *chromium.Writer, ev *chromium.Event) (int, error) { return 1, w.Write(ev) },
		func(w *chromium.Writer, ev *chromium.Event) (int, error) { w.Drop(ev); return 0, nil },
		func(w *chromium.Writer, _ *chromium.Event) (int, error) { return 1, w.Insert([]byte(ours)) },
		func(w *chromium.Writer, ev *chromium.Event) (int, error) { return 1, w.InsertBefore(ev, []byte(ours)) },
	}
	// What is done to an event, as indices of edits; it ends with a Write or Drop.
	ways := [][]int{{0}, {1}, {0, 2}, {1, 2}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {2, 3, 0}, {3, 2, 1}}
	for name, in := range map[string]string{
		"object":     `{"traceEvents":[` + theirs(1) + `,` + theirs(2) + `],"a":1}`,
		"array":      "[" + theirs(1) + ",\n" + theirs(2) + "\n]\n",
		"open":       "[" + theirs(1) + ",\n" + theirs(2),
		"bare":       theirs(1) + "\n" + theirs(2) + "\n",
		"two arrays": `{"traceEvents":[` + theirs(1) + `],"traceEvents":[` + theirs(2) + `]}`,
		"commas":     `[,` + theirs(1) + `,,` + theirs(2) + `,]`,
		"too large":  "[" + large + "," + theirs(1) + ", " + large + ", " + theirs(2) + `]`,
	} {
		for _, one := range ways {
			for _, two := range ways {
				for _, end := range []bool{false, true} {
					var out bytes.Buffer
					w := chromium.NewWriter(&out)
					want := 0
					opts := &chromium.Options{Outside: w.Outside(), MaxEventSize: 1000, Warn: func(e *chromium.FormatError) {
						if errors.Is(e, chromium.ErrTooLarge) {
							want++ // it is passed on as no event
						}
					}}
					if end {
						opts.EventsEnd = func() error { want++; return w.Insert([]byte(ours)) }
					}
					r, err := chromium.NewReader(strings.NewReader(in), opts)
					require.NoError(t, err)
					way := one
					for ev, err := range r.All() {
						require.NoError(t, err, "%s: %v %v %v", name, one, two, end)
						for _, i := range way {
							n, err := edits[i](w, ev)
							require.NoError(t, err)
							want += n
						}
						way = two
					}
					require.NoError(t, w.Close())

					copied, err := chromium.NewReader(bytes.NewReader(out.Bytes()), &chromium.Options{Strict: true})
					require.NoError(t, err)
					got := 0
					for _, err := range copied.All() {
						if !assert.NoError(t, err, "%s: %v %v %v: %s", name, one, two, end, out.String()[:min(out.Len(), 1000)]) {
							break
						}
						got++
					}
					assert.Equal(t, want, got, "%s: %v %v %v: %s", name, one, two, end, out.String()[:min(out.Len(), 1000)])
				}
			}
		}
	}
}

// An event that is inserted where a copy has no place for it is refused: the copy would be no JSON.
func TestInsertTooEarly(t *testing.T) {
	const in = `{"a":1,"traceEvents":[{"ph":"i","ts":1}]}`
	var out bytes.Buffer
	w := chromium.NewWriter(&out)
	r, err := chromium.NewReader(strings.NewReader(in), &chromium.Options{Outside: w.Outside()})
	require.NoError(t, err)
	assert.ErrorContains(t, w.Insert([]byte("{}")), "first event")
	for ev, err := range r.All() {
		require.NoError(t, err)
		require.NoError(t, w.Write(ev))
	}
	require.NoError(t, w.Close())
	assert.Equal(t, in, out.String())

	w = chromium.NewWriter(&out)
	require.NoError(t, w.Insert([]byte("{}")))
	_, err = chromium.NewReader(strings.NewReader(in), &chromium.Options{Outside: w.Outside()})
	assert.ErrorContains(t, err, "Insert has begun")
}
