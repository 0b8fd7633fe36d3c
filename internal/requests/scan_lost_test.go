package requests

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/nettrace"
)

// TestLostNames: what is lost of the rundown is no loss of requests, unless these go on behind it.
func TestLostNames(t *testing.T) {
	for name, c := range map[string]struct {
		rundown, after int64
		goesOn         bool
		want           int
	}{
		"of the rundown":         {100, 110, false, 0},
		"from before it, too":    {100, 90, false, 1},
		"there is none":          {0, 110, false, 1},
		"and requests behind it": {100, 110, true, 1},
	} {
		s := &Scanner{reader: &nettrace.Reader{}, batch: make([]httpphases.Event, 0, 8), rundown: c.rundown}
		s.lost(&nettrace.Loss{After: c.after, Before: 120})
		s.losses = 1
		if c.goesOn {
			s.ofRequests()
			assert.Zero(t, s.rundown)
		}
		assert.Len(t, s.batch, c.want, name)
		assert.Equal(t, c.want == 0, s.LostNames(), name)
	}
}
