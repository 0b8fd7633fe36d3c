package chromium_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// An event is inserted at the end of every form of document, whole or cut, and refused behind it.
func TestInsertAtTheEnd(t *testing.T) {
	const theirs = `{"ph":"i","name":"theirs","ts":1,"pid":1,"tid":2}`
	const ours = `{"ph":"i","name":"ours","ts":2,"pid":1,"tid":2}`
	for name, in := range map[string]string{
		"object":        `{"traceEvents":[` + theirs + `],"a":1}`,
		"object, empty": `{"traceEvents":[]}`,
		"object, cut":   `{"traceEvents":[` + theirs + `,{"ph":"`,
		"array":         "[" + theirs + ",\n" + theirs + "\n]\n",
		"array, open":   "[" + theirs + ",\n" + theirs + ",\n",
		"bare":          theirs + "\n" + theirs + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := chromium.NewWriter(&out)
			calls := 0
			r, err := chromium.NewReader(strings.NewReader(in), &chromium.Options{Outside: w.Outside(), EventsEnd: func() error {
				calls++
				return w.Insert([]byte(ours))
			}})
			require.NoError(t, err)
			for ev, err := range r.All() {
				if err != nil {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					break
				}
				require.NoError(t, w.Write(ev))
			}
			assert.Equal(t, 1, calls)
			before := out.String()
			assert.ErrorContains(t, w.Insert([]byte(ours)), "EventsEnd")
			require.NoError(t, w.Close())
			assert.Equal(t, before, out.String())
			copied, err := chromium.NewReader(strings.NewReader(out.String()), &chromium.Options{Strict: true})
			require.NoError(t, err)
			names := ""
			for ev, err := range copied.All() {
				require.NoError(t, err, out.String())
				names = string(ev.Name)
			}
			assert.Equal(t, "ours", names, out.String())
		})
	}
}

func TestWriteToAClosedWriter(t *testing.T) {
	var out bytes.Buffer
	w := chromium.NewWriter(&out)
	require.NoError(t, w.Insert([]byte("{}")))
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	whole := out.String()
	for name, err := range map[string]error{
		"Insert": w.Insert([]byte("{}")), "InsertBefore": w.InsertBefore(&chromium.Event{}, []byte("{}")), "Write": w.Write(&chromium.Event{}),
	} {
		assert.ErrorContains(t, err, "closed Writer", name)
	}
	assert.Equal(t, whole, out.String())
	boom := errors.New("boom")
	assert.ErrorIs(t, chromium.NewWriter(failing{boom}).Close(), boom)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
