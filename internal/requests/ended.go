package requests

import (
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/relay"
)

// An endedLine brings requests that have ended from who builds them to who takes them: to write rows takes a
// third of what it takes to build them.
type endedLine struct {
	options httpphases.Options // of the Builder
	request func(*httpphases.Request)
	server  func(*httpphases.ServerRequest)
	line    *relay.Line[[]ended] // nil where nobody takes anything
	closed  bool
}

// An ended request of either side.
type ended struct {
	made   *httpphases.Request
	served *httpphases.ServerRequest // if made is nil
}

// endedAtOnce is how many requests are handed on together: they have a kilobyte each.
const endedAtOnce = 64

// newEndedLine returns a line to request and server, which may be nil.
func newEndedLine(request func(*httpphases.Request), server func(*httpphases.ServerRequest)) *endedLine {
	l := &endedLine{request: request, server: server}
	if request != nil {
		l.options.Request = func(r *httpphases.Request) { l.hand(ended{made: r}) }
	}
	if server != nil {
		l.options.Server = func(s *httpphases.ServerRequest) { l.hand(ended{served: s}) }
	}
	if request == nil && server == nil {
		return l
	}
	l.line = relay.New(nil, func(b *[]ended) error {
		for _, e := range *b {
			l.take(e)
		}
		clear(*b)
		*b = (*b)[:0]
		return nil
	})
	return l
}

func (l *endedLine) take(e ended) {
	if e.made != nil {
		l.request(e.made)
	} else {
		l.server(e.served)
	}
}

// hand hands a request on.
func (l *endedLine) hand(e ended) {
	if l.closed {
		l.take(e)
		return
	}
	b := l.line.Batch()
	if *b = append(*b, e); len(*b) == endedAtOnce {
		_ = l.line.Send() // take returns no error
	}
}

// close returns when all that was handed on is taken. What is handed on later is taken at once, by
// who hands it on.
func (l *endedLine) close() {
	if l.line != nil && !l.closed {
		_ = l.line.Send()
		_ = l.line.Close()
	}
	l.closed = true
}
