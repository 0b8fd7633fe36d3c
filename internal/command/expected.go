package command

import (
	"fmt"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/profile"
)

// A frameSize is what an output of spans takes for each frame that opens and closes: bytes, and
// so many times its name.
type frameSize struct{ bytes, names int64 }

// perFrame was measured on recordings of one to 60 s.
var perFrame = map[string]frameSize{
	"chromium":   {155, 2},
	"speedscope": {84, 0},
}

// expected is about how many bytes a profile takes in a format, before compression; 0 where that
// is not known. It counts the frames that open from one stack to the next, in an eighth of the
// samples, here and there.
func expected(p *profile.Profile, format string) int64 {
	each, ok := perFrame[format]
	if !ok {
		return 0
	}
	all := int64(0)
	for _, sum := range relay.Shares(len(p.Threads), func(sum *int64, i int) { *sum += each.thread(p.Table, &p.Threads[i].Samples) }) {
		all += *sum
	}
	return all
}

// thread is about how many bytes the samples of a thread take.
func (each *frameSize) thread(t *profile.Table, samples *profile.Samples) int64 {
	n := samples.Len()
	stride := max(256, n/4096)
	looked, sum := 0, int64(0)
	c := samples.Cursor()
	var s profile.Sample
	for from := 0; from < n; from += stride {
		c.Seek(from)
		c.Read(&s)
		last := s.Stack
		for range min(stride/8, n-from) - 1 {
			c.Read(&s)
			if s.Stack != last && !s.Hidden && s.Type != profile.SampleEvent {
				sum += each.between(t, s.Stack, last)
				last = s.Stack
			}
			looked++
		}
	}
	if looked == 0 {
		return 0
	}
	return int64(float64(sum) / float64(looked) * float64(n))
}

// between is how many bytes the frames of stack a take that are not open in stack b.
func (each *frameSize) between(t *profile.Table, a, b profile.StackID) (sum int64) {
	for a != b {
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
