package command

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/internal/report"
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
	if each, ok := perWholeFrame[format]; ok {
		return each.stacks(p)
	}
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

// A wholeSize is what an output takes that holds each stack from root to leaf: for each frame
// bytes, its name or a number, for each sample or for each distinct stack.
type wholeSize struct {
	bytes                     int64
	name, number, everySample bool
}

// perWholeFrame are sizes by format, as the writers append them.
var perWholeFrame = map[string]wholeSize{
	"ndjson":              {bytes: 3, name: true, everySample: true},
	"folded":              {bytes: 1, name: true},
	"pprof":               {number: true},
	"perfetto":            {bytes: 1, number: true},
	"otlp-profiles-alpha": {number: true},
}

// deepStack is how many frames make it worth to look: where each stack is one frame deeper than the
// last, as spans are that begin and never end, the output grows with the square of the input.
const deepStack = 1000

// stacks is about how many bytes the stacks of a profile take; 0 where none is deep.
func (each *wholeSize) stacks(p *profile.Profile) int64 {
	t := p.Table
	if deepest(t) < deepStack {
		return 0
	}
	frame := float64(each.bytes)
	if each.number {
		frame += float64(protowire.SizeVarint(uint64(t.Frames())))
	}
	if each.name {
		names := 0
		for id := 1; id < t.Stacks(); id++ {
			m := t.MethodOf(t.Frame(profile.StackID(id)))
			names += len(m.Module) + 1 + len(m.Name)
		}
		frame += float64(names) / float64(t.Stacks()-1)
	}
	frames := 0.0
	met := make([]bool, t.Stacks())
	for _, th := range p.Threads {
		c := th.Samples.Cursor()
		for s := (profile.Sample{}); c.Read(&s); {
			if s.Hidden || s.Type == profile.SampleEvent || met[s.Stack] {
				continue
			}
			met[s.Stack] = !each.everySample
			frames += float64(t.Depth(s.Stack))
		}
	}
	return int64(min(frames*frame, math.MaxInt64/2))
}

// deepest is the depth of the deepest stack.
func deepest(t *profile.Table) (n int) {
	for id := range t.Stacks() {
		n = max(n, t.Depth(profile.StackID(id)))
	}
	return n
}

// large is an output that nobody expects of a trace of that size.
func large(bytes, stored int64) bool {
	const much, times = 200e6, 5
	return bytes >= much && bytes >= times*stored
}

// announcement says that an output will be large, and what would be smaller. deep is the depth of
// the deepest stack.
func announcement(name, format string, bytes int64, deep int) string {
	size := fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
	if bytes >= 1e10 {
		size = fmt.Sprintf("%.0f GB", float64(bytes)/1e9)
	}
	told := fmt.Sprintf("%s will take about %s as %s (before compression); ", name, size, format)
	if _, whole := perWholeFrame[format]; whole {
		return told + fmt.Sprintf("each stack stands there from root to leaf, and the deepest has %s frames; chromium and firefox hold what changes from one to the next, a small part of that", report.Count(deep))
	}
	return told + ".zst after its name takes a small part of that, and so does .pb.gz or .folded"
}
