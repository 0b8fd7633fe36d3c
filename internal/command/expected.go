package command

import (
	"fmt"

	"github.com/tracefix/tracefix/profile"
)

// What an output of spans takes for each frame that opens and closes, beside its name twice:
// measured on recordings of one to 60 s.
var perFrame = map[string]struct{ bytes, names int64 }{
	"chromium":   {155, 2},
	"speedscope": {84, 0},
}

// expected is about how many bytes a profile takes in a format, before compression; 0 where that
// is not known. It counts the frames that open from one stack to the next, which is much less
// work than to write them.
func expected(p *profile.Profile, format string) int64 {
	each, ok := perFrame[format]
	if !ok {
		return 0
	}
	t := p.Table
	sum := int64(0)
	for _, th := range p.Threads {
		var last profile.StackID
		for _, s := range th.Samples.All() {
			if s.Stack == last || s.Hidden || s.Type == profile.SampleEvent {
				continue
			}
			for a, b := s.Stack, last; a != b; {
				if t.Depth(b) >= t.Depth(a) {
					b = t.Parent(b)
					continue
				}
				sum += each.bytes
				if each.names > 0 {
					m := t.MethodOf(t.Frame(a))
					sum += each.names * int64(len(m.Module)+1+len(m.Name))
				}
				a = t.Parent(a)
			}
			last = s.Stack
		}
	}
	return sum
}

// large is an output that nobody expects of a trace of that size.
func large(bytes, stored int64) bool {
	const much, times = 200e6, 5
	return bytes >= much && bytes >= times*stored
}

// announcement says that an output will be large, and what would be smaller.
func announcement(name, format string, bytes int64) string {
	return fmt.Sprintf("%s will take about %.0f MB as %s (before compression); .zst after its name takes a small part of that, and so does .pb.gz or .folded", name, float64(bytes)/1e6, format)
}
