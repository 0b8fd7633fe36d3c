package requests_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

// TestCallsOfSpans: on .NET Core 3.1 spans of the bridge are all that tells of requests made. While
// one is open, its caller waits for the other side; whose id a thread still has when it makes one
// is not its caller.
func TestCallsOfSpans(t *testing.T) {
	for name, calls := range map[string]int{"net31-http": 2, "net31-more": 0, "net31-server-bridge": 43} {
		file := tracetest.Corpus(t, "dotnet10", name+".nettrace")
		var made []*httpphases.Request
		var served []*httpphases.ServerRequest
		rec := requests.NewRecorder(0)
		p, _ := record(t, file, rec)
		in, err := input.Open(t.Context(), file, nil)
		require.NoError(t, err)
		t.Cleanup(func() { in.Close() })
		var scan *requests.Scanner
		_, err = requests.Read(t.Context(), in, func(r *nettrace.Reader) {
			scan = requests.NewScanner(r, func(q *httpphases.Request) { made = append(made, q) }, func(s *httpphases.ServerRequest) { served = append(served, s) })
		}, func(ev *nettrace.Event) { scan.Event(ev) })
		require.NoError(t, err)
		scan.Finish()

		x := requests.NewExplainer(p.Table, rec)
		called, ran := 0, 0
		for _, s := range served {
			e := x.Server(s)
			if e == nil {
				continue
			}
			of := strings.HasPrefix(s.Target, "/call/")
			assert.Equal(t, of, e.Time.OtherSide > 0, "%s: %s at %d ns", name, s.Target, s.Start)
			if of {
				called++
			}
		}
		assert.Equal(t, calls, called, name)
		for _, q := range made {
			if e := x.Client(q); e != nil {
				assert.Zero(t, e.Time.Await, "%s: its phases are not told", name)
				if e.Time.CPU > 0 {
					ran++
				}
			}
		}
		assert.NotZero(t, ran, "%s: spans have activities, whose work is known", name)
	}
}
