package compare

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// TestAPartOfARequestIsNotCompared: of one that was open when the recording began only the end is told.
func TestAPartOfARequestIsNotCompared(t *testing.T) {
	l := newRequests(false)
	for _, before := range []bool{false, true} {
		l.addServed(&httpphases.ServerRequest{Target: "/a", Status: 500, Duration: 5e9, HasDuration: true, StartUnknown: before})
	}
	var got [][3]any
	for r := range l.all() {
		got = append(got, [3]any{r.start, r.Duration, r.answer})
	}
	assert.Equal(t, [][3]any{{int64(0), int64(5e9), refused}, {int64(5e9), int64(-1), refused}}, got)
}

// TestNamelessRequests: of those that were served the bridge alone does not tell what was asked for. Where both traces
// have requests that were made, these are compared, else none are.
func TestNamelessRequests(t *testing.T) {
	list := func(routes ...string) *Requests {
		l := newRequests(false)
		for i, r := range routes {
			l.add(i+1, "", r, r, 1, 0, 1e6, true, fine)
		}
		return l
	}
	side := func(l *Requests) string {
		if l.Len() == 0 {
			return ""
		}
		return l.kinds[0].path
	}
	for name, c := range map[string]struct {
		served, made [2]*Requests
		want         [2]string // of whose requests
		lacks        string
	}{
		"both made some":      {[2]*Requests{list("/a"), list("")}, [2]*Requests{list("/m"), list("/n")}, [2]string{"/m", "/n"}, ""},
		"one made none":       {[2]*Requests{list("/a"), list("")}, [2]*Requests{list("/m"), list()}, [2]string{"/a", ""}, "after"},
		"the other one":       {[2]*Requests{list(""), list("/a")}, [2]*Requests{list(), list("/m")}, [2]string{"", "/a"}, "before"},
		"neither tells":       {[2]*Requests{list(""), list("")}, [2]*Requests{list("/m"), list("/n")}, [2]string{"", ""}, ""},
		"both tell":           {[2]*Requests{list("/a"), list("/b")}, [2]*Requests{list("/m"), list("/n")}, [2]string{"/a", "/b"}, ""},
		"one has no requests": {[2]*Requests{list("/a"), list()}, [2]*Requests{list("/m"), list()}, [2]string{"/a", ""}, ""},
	} {
		a, b := alike(&Trace{Requests: c.served[0], made: c.made[0]}, &Trace{Requests: c.served[1], made: c.made[1]})
		assert.Equal(t, c.want, [2]string{side(a.Requests), side(b.Requests)}, name)
		lacks := ""
		for _, x := range []*Trace{a, b} {
			if len(x.unrecorded) > 0 {
				lacks = map[*Trace]string{a: "before", b: "after"}[x]
				assert.Equal(t, []string{"requests"}, x.unrecorded, name)
				assert.Equal(t, "does not tell what was asked for", x.without(&kind{name: "requests"}), name)
			}
		}
		assert.Equal(t, c.lacks, lacks, name)
	}
}
