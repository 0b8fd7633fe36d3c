package samples

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/profile"
)

var foldedLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\x00-\x1f{}]+ \d+(\.\d+)?$`) })

// notStack finds what no stack holds.
var notStack = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\x00-\x1f{}]`) })

// A method is written as Module!Type.Method(arguments), or without its module.
var (
	flatLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\x00-\x1f{};]+ \d+$`) })
	flatCall = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\s!]+![^\s!]+|^[^\s(]+\(.*\)$`) })
)

// isFolded recognises lines of a stack and a count, one of them of more than one frame. Two of
// ten may be something else.
func isFolded(b []byte) bool {
	lines := input.TextLines(b, 10)
	good, deep := 0, false
	for _, l := range lines {
		if foldedLine().Match(l) {
			good++
			deep = deep || bytes.IndexByte(l, ';') > 0
		}
	}
	return deep && good*10 >= len(lines)*8 || isFlat(b) || isLong(b)
}

// isLong recognises a stack that is longer than what is looked at, as deep ones are once they are
// repaired: no line of it is whole, but its frames are methods.
func isLong(b []byte) bool {
	if len(b) < input.SniffSize || notStack().Match(b) {
		return false
	}
	calls, frames := 0, 0
	for name := range bytes.SplitSeq(b, []byte(";")) {
		if frames++; flatCall().Match(name) {
			calls++
		}
	}
	return frames > 16 && calls*10 >= frames*8
}

// isFlat recognises folded stacks of one frame each as tracefix writes them: each name once, in
// order, and methods among them. Sizes of files, counts of words and settings look like that too,
// but hold no calls.
func isFlat(b []byte) bool {
	before, calls := []byte(nil), false
	for i, l := range input.TextLines(b, len(b)) {
		if !flatLine().Match(l) {
			return false
		}
		name := l[:bytes.LastIndexByte(l, ' ')]
		if first := i == 0 && string(name) == noFrames; first {
			continue
		}
		if bytes.Compare(before, name) >= 0 {
			return false
		}
		before, calls = name, calls || flatCall().Match(name)
	}
	return calls
}

// foldedWeights are what the counts of folded stacks may be beside time.
var foldedWeights = map[string]profile.Unit{"samples": profile.Count, "bytes": profile.Bytes}

// readFolded reads lines of `root;child;leaf count`. Counts are taken for microseconds of self
// time, which is what tracefix writes; stackcollapse scripts count samples, whose shares are the
// same. The file does not tell, so Options.Weights may.
func readFolded(ctx context.Context, r io.Reader, b *builder) error {
	t := b.thread(0, 0)
	t.Name = "all threads"
	timed := b.opts.Weights == nil
	for _, name := range b.opts.Weights {
		unit, known := foldedWeights[name]
		switch {
		case name == profile.TimeWeight:
			timed = true
		case !known:
			return weightError("folded stacks have one count each, of time (wall), samples or bytes, as --weight says, and none of %s", name)
		default:
			b.p.Weights = append(b.p.Weights, profile.Weight{Name: name, Unit: unit, Sums: true})
		}
	}
	if len(b.p.Weights) > 0 {
		b.p.Names = []string{""}
	}
	values := make([]profile.Value, len(b.p.Weights))
	_, err := lines(ctx, r, b, func(offset int64, line []byte) {
		if len(bytes.TrimSpace(line)) == 0 {
			return
		}
		at := bytes.LastIndexByte(line, ' ')
		count, err := strconv.ParseFloat(string(line[at+1:]), 64)
		if at <= 0 || err != nil || !(count >= 0) {
			b.warn(offset, "expected a stack and a count, as in `main;work 12`, found %s", found(line))
			return
		}
		b.stack = b.stack[:0]
		if stack := strings.TrimSpace(string(line[:at])); stack != noFrames {
			for name := range strings.SplitSeq(stack, ";") {
				b.stack = append(b.stack, b.frame(methodOf(name), 0))
			}
		}
		s := profile.Sample{}
		if n := len(b.stack); n > 0 && b.p.Table.MethodOf(b.stack[n-1]).Name == profile.OffCPU {
			b.stack, s.Type = b.stack[:n-1], profile.SampleOffCPU
		}
		s.Stack = b.push(b.stack)
		for i := range values {
			values[i] = profile.Value{Weight: uint8(i), Amount: count}
		}
		if len(values) > 0 && count > 0 {
			t.weighs(s.Stack, values)
		}
		if !timed {
			return
		}
		if count > maxTime/1000 || !t.weigh(int64(count*1000), 1, s) {
			b.warn(offset, "a count of %g, more microseconds than a trace can have", count)
		}
	})
	if err != nil {
		return err
	}
	b.ofCPUs(t)
	unit := ""
	if timed {
		if len(t.rows) > 0 && t.rows[0].Type == profile.SampleManaged {
			b.p.Meta.Untold = true
			b.note("the file does not tell what was on a CPU and what waited, and all counts as on a CPU; the recording that it was converted from tells")
		}
		unit = "a count as a microsecond; --weight samples or bytes says what else they are"
	}
	b.sums(unit)
	return nil
}

// ofCPUs makes the samples those of a CPU where stacks hold other code than managed, or threads
// that were off their CPU: the runtime's own sampler records neither.
func (b *builder) ofCPUs(t *thread) {
	other := slices.ContainsFunc(t.rows, func(r row) bool { return r.Type == profile.SampleOffCPU })
	for m := profile.MethodID(0); !other && int(m) < b.p.Table.Methods(); m++ {
		k := b.p.Table.MethodAt(m).Kind
		other = k == profile.Native || k == profile.Kernel
	}
	for i := range t.rows {
		if r := &t.rows[i]; other && r.Type == profile.SampleManaged {
			r.Type = profile.SampleCPU
		}
	}
}

// noFrames is what the writer of folded stacks calls a stack without a frame.
const noFrames = "[no frames]"

// found shows how a line begins, for messages.
func found(line []byte) string {
	if len(line) > 40 {
		return strconv.Quote(string(line[:40])) + "..."
	}
	return strconv.Quote(string(line))
}
