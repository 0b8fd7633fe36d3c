package tracefix_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/httpphases"
)

// A caller whose own function panics can recover it, on whatever goroutine that was called: a server
// that looks at many traces does not end with one of them.
func TestPanicOfTheCalleeIsTheCallers(t *testing.T) {
	mine := errors.New("mine")
	for _, n := range []int{1, 2, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
		f, err := tracefix.Open(t.Context(), "internal/requests/testdata/http-more.nettrace.zst")
		require.NoError(t, err)
		defer f.Close()
		for _, at := range []int{1, 20, 57} { // while the trace is read, and at its end
			got := 0
			func() {
				defer func() {
					err, _ := recover().(error)
					assert.ErrorIs(t, err, mine, "request %d", at)
				}()
				_ = f.Requests(t.Context(), func(*httpphases.Request) {
					if got++; got == at {
						panic(mine)
					}
				}, nil)
			}()
			assert.Equal(t, at, got, "nothing is told after that")
		}
		got := 0
		require.NoError(t, f.Requests(t.Context(), func(*httpphases.Request) { got++ }, nil), "the file is as it was")
		assert.Equal(t, 57, got)
	}
}
