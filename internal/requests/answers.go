package requests

import (
	"net"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
)

// Others are requests that the process served, until the one that asked for each ends: it
// does so behind it. The zero value is empty.
type Others struct {
	byID   map[int]*httpphases.ServerRequest
	byPath map[string][]*httpphases.ServerRequest
}

// others is how many of them are kept.
const others = 20000

func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}

// Add takes a served request that has ended.
func (o *Others) Add(s *httpphases.ServerRequest) {
	if o.byID == nil || len(o.byID) >= others {
		o.byID, o.byPath = map[int]*httpphases.ServerRequest{}, map[string][]*httpphases.ServerRequest{}
	}
	o.byID[s.ID] = s
	path := pathOf(s.Target)
	o.byPath[path] = append(o.byPath[path], s)
}

// toItself reports whether r went to the machine that it came from.
func toItself(r *httpphases.Request) bool {
	ip := net.ParseIP(r.Host)
	return r.Host == "localhost" || strings.HasSuffix(r.Host, ".localhost") || ip != nil && ip.IsLoopback()
}

// Of returns the request by which r was served: the one that ids name, else the only one of
// its path that lies within r, and of no other request; then it is guessed.
func (o *Others) Of(r *httpphases.Request) (s *httpphases.ServerRequest, guessed bool) {
	path := pathOf(r.Target)
	if s = o.byID[r.Server]; s == nil && r.HasDuration && r.TraceID == "" && toItself(r) {
		for _, c := range o.byPath[path] {
			if !c.HasDuration || c.Process != r.Process || c.Start < r.Start || c.Start+c.Duration > r.Start+r.Duration+slack {
				continue
			}
			if s != nil {
				return nil, false
			}
			s = c
		}
		guessed = s != nil
	}
	if s == nil {
		return nil, false
	}
	delete(o.byID, s.ID)
	list := o.byPath[path]
	kept := list[:0]
	for _, c := range list {
		if c != s && c.Start+c.Duration > r.Start-int64(60e9) {
			kept = append(kept, c)
		}
	}
	o.byPath[path] = kept
	return s, guessed
}

// slack is how much later than the client a server may write that a request is over, ns:
// the answer is on its way before.
const slack = int64(5e6)
