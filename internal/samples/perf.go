package samples

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/load"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/profile"
)

var perfFrameLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s+[0-9a-f]+ \S`) })

// isPerfScript recognises an event of perf script with a frame in or behind it, comments before it left
// out, or what is told beside events: of a whole machine thousands of mappings stand before the first.
func isPerfScript(b []byte) bool {
	event := false
	for _, l := range input.TextLines(b, input.SniffSize) {
		switch {
		case l[0] == '#': // a header tells of each processor
		case event && perfFrameLine().Match(l):
			return true
		case isPerfRecord(l):
			if head, _, _ := bytes.Cut(l, []byte(" PERF_RECORD_")); perfTime().Match(head) {
				return true
			}
		default:
			m := perfHead(l)
			if event = m != nil; !event {
				return false
			}
			if perfBare(m) {
				return true
			}
		}
	}
	return false
}

// perfBare reports whether the first line of a sample is all of it: recorded without -g it has the
// address there.
func perfBare(m [][]byte) bool {
	return len(m[8]) > 0 && isSampled(string(m[7])) && perfFrameLine().Match(append([]byte(" "), m[8]...))
}

// isPerfRecord recognises what perf script tells beside
// events: --show-mmap-events, --show-task-events, --show-lost-events.
func isPerfRecord(line []byte) bool { return bytes.Contains(line, []byte(" PERF_RECORD_")) }

var perfLost = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` PERF_RECORD_LOST\w* lost (\d{1,15})\b`) })

// perfLimit is the number of frames at which perf cuts stacks (kernel.perf_event_max_stack).
const perfLimit = 127

// perfHead returns what the first line of an event tells, nil if it is none: all, command, process
// and thread, CPU, time, period, event, and what a tracepoint tells. Which of them are there is up
// to `perf script -F`; a time or an event is.
func perfHead(line []byte) [][]byte {
	if m := perfEvent().FindSubmatch(line); m != nil {
		return m
	}
	if m := perfTime().FindSubmatch(line); m != nil {
		return append(m, nil, nil)
	}
	return nil
}

// A name may end in numbers, as "worker 3": flags do not begin with a digit, or the id behind it
// would be some. It may be empty, too, of which blanks are left: if another could begin in the ids,
// the time would be the thread's.
const perfWho = `^(?:\s*(\S.*?))??\s+(-?\d+)(?:/(-?\d+))?\s+(?:\[(\d+)\]\s+)?(?:[^\s/\d][^\s/]{0,7}\s+)??`

var (
	perfEvent = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(perfWho + `(?:(\d+\.\d+):\s+)?(?:(\d+)\s+)?([^\s\d\[(]\S*?):(?:\s+(.*))?$`)
	})
	perfTime = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(perfWho + `(\d+\.\d+):\s*(\d+)?\s*$`) })
)

// A switch is a tracepoint's text about who runs next.
var perfNext = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`==> next_comm=.* next_pid=(\d+) |==> .*:(\d+) \[`) })

// A perfReader reads the text that `perf script` prints.
type perfReader struct {
	*builder
	base    int64 // ns, of the first event
	timed   bool
	untimed int64
	clock   string // the event that samples are
	period  int64  // ns, of clock
	others  map[string]int
	noPID   bool
	noEvent bool
	deepest int
	bare    int // samples that have an address and no stack

	offset int64       // of the event that is being read
	head   *perfSample // nil: none
	depth  int         // recorded frames: those that were inlined are none
	off    map[int64]perfOff

	switches, why int // rows of threads that left their CPU, and of these with a stack
}

// A perfOff is the row of a thread that left its CPU. Until it is told who switched to the thread
// the row is an event, which endless marks.
type perfOff struct {
	thread *thread
	row    int
}

// maxTID is above all ids of threads (PID_MAX_LIMIT).
const maxTID = 1 << 22

// As long as a row says that it lasts.
const (
	endless = -1
	ended   = -2 // the thread has
)

type perfSample struct {
	thread *thread
	tid    int64
	event  string
	ns     int64
	text   string
	bare   bool // see perfBare
}

func readPerf(ctx context.Context, r io.Reader, b *builder) error {
	p := &perfReader{builder: b, others: map[string]int{}, off: map[int64]perfOff{}}
	ended, err := lines(ctx, r, b, p.line)
	if err != nil {
		return err
	}
	if !ended && p.head != nil {
		b.warn(p.offset, "the text breaks off within this sample")
	}
	p.event()
	p.conclude()
	return nil
}

func (p *perfReader) line(offset int64, line []byte) {
	inside := p.head != nil && len(line) > 0 && (line[0] == ' ' || line[0] == '\t')
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		p.event()
		return
	case line[0] == '#':
		return
	case inside && !p.head.bare && (len(p.stack) > 0 || line[0] == '\t') && (p.frame(line) || p.source(line)):
		return
	case isPerfRecord(line):
		p.event()
		if m := perfLost().FindSubmatch(line); m != nil {
			n, _ := strconv.ParseInt(string(m[1]), 10, 64)
			p.p.Meta.Lost += n
		}
		return
	}
	m := perfHead(line)
	if m == nil && inside && (p.frame(line) || p.source(line)) {
		return // names of threads are set to the right where no stack follows: the next event begins with blanks, too, and "dd" is an address
	}
	p.event()
	if m == nil || !p.begin(m) {
		p.warn(offset, "expected an event or a frame of perf script, found %s", found(line))
		return
	}
	p.offset = offset
}

// begin takes the first line of an event.
func (p *perfReader) begin(m [][]byte) bool {
	pid, err1 := strconv.ParseInt(string(m[2]), 10, 64)
	tid, err2 := pid, error(nil)
	switch {
	case m[3] != nil:
		tid, err2 = strconv.ParseInt(string(m[3]), 10, 64)
	default:
		pid, p.noPID = 0, true
	}
	if err1 != nil || err2 != nil {
		return false
	}
	e := &perfSample{tid: tid, event: string(m[7]), text: string(m[8])}
	p.noEvent = p.noEvent || e.event == ""
	name := string(m[1])
	if tid < 0 && isSwitch(e.event) { // a thread that ends has no id any more when it leaves its CPU
		_, prev, _ := strings.Cut(e.text, " prev_pid=")
		prev, _, _ = strings.Cut(prev, " ")
		if n, err := strconv.ParseInt(prev, 10, 64); err == nil {
			e.tid, tid, name = n, n, ""
		}
	}
	comm := name
	if tid == 0 { // one idle thread for each CPU has that number
		if cpu, err := strconv.ParseInt(string(m[4]), 10, 32); err == nil {
			tid = cpu
			if m[3] == nil && cpu > 0 {
				tid += maxTID // all threads are of one process here, and 1 is somebody
			}
			comm += "/" + string(m[4])
		}
	}
	e.thread = p.thread(pid, tid)
	e.thread.Name = cmp.Or(comm, e.thread.Name) // it begins with the name of who made it, or of what ran before
	if m[3] != nil && (pid == e.tid || e.thread.Process.Name == "") {
		e.thread.Process.Name = cmp.Or(name, e.thread.Process.Name)
	}
	if m[5] != nil {
		ns, ok := perfNanos(string(m[5]))
		if !ok {
			return false
		}
		if !p.timed {
			p.base, p.timed = ns, true
		}
		if e.ns = ns - p.base; e.ns > maxTime || e.ns < -maxTime {
			return false
		}
	} else {
		e.ns = p.untimed * int64(time.Millisecond)
		p.untimed++
	}
	if n, err := strconv.ParseInt(string(m[6]), 10, 64); err == nil && isClock(e.event) && p.period == 0 && n < int64(time.Second) {
		p.period = n
	}
	p.head, p.stack, p.depth = e, p.stack[:0], 0
	if perfBare(m) && p.frame(m[8]) {
		e.bare = true
		p.bare++
	}
	return true
}

// perfNanos reads seconds since the machine was started, or of a wall clock, with up to nine digits
// behind the point.
func perfNanos(s string) (int64, bool) {
	whole, part, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	ns, err2 := strconv.ParseInt((part + "000000000")[:9], 10, 64)
	if err != nil || err2 != nil || sec > math.MaxInt64/int64(time.Second)-1 {
		return 0, false
	}
	return sec*int64(time.Second) + ns, true
}

// perfClock is what an event is to a clock: the two kinds of cores of a processor count the same apart.
func perfClock(event string) string {
	for _, core := range []string{"cpu_core/", "cpu_atom/", "cpu_lowpower/"} {
		if what, ok := strings.CutPrefix(event, core); ok {
			return "cpu/" + what
		}
	}
	return event
}

// frame takes a line of a stack, leaf first: the address, the symbol, and the file in parentheses.
func (p *perfReader) frame(line []byte) bool {
	addrText, rest, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	addr, err := strconv.ParseUint(strings.TrimPrefix(addrText, "0x"), 16, 64)
	if err != nil {
		return false
	}
	name, file := splitFile(strings.TrimSpace(rest))
	if i := strings.LastIndex(name, "+0x"); i > 0 {
		name = name[:i]
	}
	switch {
	case file == "inlined":
		file = ""
	default:
		p.depth++
	}
	p.stack = append(p.stack, p.builder.frame(perfMethod(name, file, addr), addr))
	return true
}

// source takes the line of a frame that `perf script -F +srcline` tells behind it: two blanks, and
// file:line, or what stands for it where that is not known.
func (p *perfReader) source(line []byte) bool {
	text, ok := strings.CutPrefix(string(line), "  ")
	if !ok || len(p.stack) == 0 || text[0] == ' ' || text[0] == '\t' {
		return false
	}
	text, inlined := strings.CutSuffix(strings.TrimSpace(text), " (inlined)")
	if inlined { // told here, and not behind the symbol
		p.depth--
	}
	text, _, _ = strings.Cut(text, " (discriminator ")
	at := strings.LastIndexByte(text, ':')
	if n, err := strconv.Atoi(text[at+1:]); err == nil && at > 0 && n > 0 {
		p.p.Table.SetPlace(p.stack[len(p.stack)-1], profile.Place{File: text[:at], Line: n})
	}
	return true
}

// splitFile splits `symbol (file)`; a file may have parentheses of its own.
func splitFile(s string) (name, file string) {
	if !strings.HasSuffix(s, ")") {
		return s, ""
	}
	open := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')':
			open++
		case '(':
			if open--; open == 0 {
				if i > 0 && s[i-1] != ' ' {
					return s, "" // arguments
				}
				return strings.TrimSpace(s[:i]), s[i+1 : len(s)-1]
			}
		}
	}
	return s, ""
}

func perfMethod(name, file string, addr uint64) profile.Method {
	if i := strings.LastIndex(file, "+0x"); i > 0 && strings.Trim(file[i+3:], "0123456789abcdef") == "" {
		file = file[:i] // -F +dsoff
	}
	file = strings.TrimSuffix(file, " (deleted)")
	if name == "[unknown]" || name == "" {
		if file == "[unknown]" {
			file = "?"
		}
		return profile.Method{Module: load.FileModule(file), Name: fmt.Sprintf("%#x", addr), Kind: profile.Unresolved}
	}
	if strings.HasSuffix(name, "]") && strings.HasSuffix(file, ".dll") {
		file = "" // compiled ahead of time: perfcollect names its methods as the runtime's map does
	}
	m := load.NamedSymbol(name, file, addr)
	if file == "" && m.Kind == profile.Native { // perf did not tell
		m.Module = ""
	}
	return m
}

// event ends the event that is being read.
func (p *perfReader) event() {
	e := p.head
	if e == nil {
		return
	}
	p.head = nil
	for i, j := 0, len(p.stack)-1; i < j; i, j = i+1, j-1 {
		p.stack[i], p.stack[j] = p.stack[j], p.stack[i]
	}
	s := profile.Sample{Time: e.ns, Stack: p.push(p.stack), Type: profile.SampleEvent}
	p.deepest = max(p.deepest, p.depth)
	if p.depth == p.limit() {
		s.Cut = profile.CutDepth
	}
	name, _, _ := strings.Cut(e.event, ":")
	switch {
	case isSwitch(e.event):
		p.switched(e, s)
		return
	case p.clock == "" && isSampled(name), p.clock != "" && perfClock(e.event) == p.clock:
		p.clock = perfClock(e.event)
		s.Type = profile.SampleCPU
	default:
		p.others[e.event]++
	}
	e.thread.rows = append(e.thread.rows, row{Sample: s})
}

func (p *perfReader) limit() int { return cmp.Or(p.opts.MaxDepth, perfLimit) }

// switched takes a thread off its CPU until somebody switches to it.
func (p *perfReader) switched(e *perfSample, s profile.Sample) {
	m := perfNext().FindStringSubmatch(e.text)
	if m == nil {
		p.others[e.event]++
		return
	}
	if next, err := strconv.ParseInt(m[1]+m[2], 10, 64); err == nil {
		if off, ok := p.off[next]; ok {
			r := &off.thread.rows[off.row]
			r.Type, r.Dur = profile.SampleOffCPU, max(0, e.ns-r.Time)
			delete(p.off, next)
		}
	}
	if e.tid != 0 {
		state, _, _ := strings.Cut(e.text, " ==>")
		if s.Dur = ended; !strings.HasSuffix(state, "=X") && !strings.HasSuffix(state, "=Z") {
			p.off[e.tid] = perfOff{e.thread, len(e.thread.rows)}
			s.Dur = endless
			if p.switches++; s.Stack != 0 {
				p.why++
			}
		}
		e.thread.rows = append(e.thread.rows, row{Sample: s})
	}
}

// conclude says what is known at the end only.
func (p *perfReader) conclude() {
	if p.deepest >= p.limit() {
		p.p.Meta.DepthLimit = p.limit()
	}
	if isClock(p.clock) {
		p.p.Meta.Interval = time.Duration(p.period)
	}
	events, open := 0, 0
	for _, t := range p.order {
		for i := range t.rows {
			switch r := &t.rows[i]; {
			case r.Dur < 0:
				if r.Dur == endless {
					open++
				}
				r.Dur = 0
			case p.clock == "" && r.Type == profile.SampleEvent:
				r.Type = profile.SampleCPU
				events++
			}
		}
	}
	if open > 0 {
		p.note("%s times a thread left its CPU are left out: the text does not tell when it came back; `perf record -a` records the switches of all CPUs, without -F each: -e cpu-clock/freq=999/ -e sched:sched_switch", report.Count(open))
	}
	if p.switches > 0 && p.why == 0 && p.deepest > 0 {
		p.note("when a thread left its CPU is told without a stack: `perf record -g` records those, and `perf script -F +pid,+ip,+sym,+dso` prints them for tracepoints, too")
	}
	if p.clock == "" { // no profile of CPU time: the events themselves are what was asked for
		if events > 0 {
			p.note("no event of a CPU clock: each of %s other events counts as a sample", report.Count(events))
		}
	} else if len(p.others) > 0 {
		p.note("samples are those of %s, and not %s", p.clock, p.leftOut())
	}
	if p.noPID {
		p.note("the text tells no processes; `perf script -F +pid` does")
	}
	if p.noEvent {
		p.note("the text names no event: each counts as a sample of a CPU; `perf script -F +event` tells")
	}
	if p.bare > 0 {
		p.note("%s samples tell where a thread was and not who called: `perf record -g` records stacks", report.Count(p.bare))
	}
	if p.untimed > 0 {
		p.note("%s events without a time: each counts for a millisecond; `perf script -F +time` tells", report.Count(int(p.untimed)))
	}
}

// leftOut lists the events that are no samples, the most frequent first.
func (p *perfReader) leftOut() string {
	names := slices.SortedFunc(maps.Keys(p.others), func(a, b string) int { return cmp.Or(cmp.Compare(p.others[b], p.others[a]), cmp.Compare(a, b)) })
	rest := len(names) - 5
	names = names[:min(len(names), 5)]
	for i, n := range names {
		names[i] = report.Count(p.others[n]) + " of " + n
	}
	text := strings.Join(names, ", ")
	if rest > 0 {
		text += fmt.Sprintf(" and of %d other kinds", rest)
	}
	return text
}

func isSwitch(event string) bool { return strings.HasSuffix(event, "sched_switch") }

// isSampled reports whether an event of perf samples what CPUs do.
func isSampled(name string) bool {
	return isClock(name) || strings.Contains(name, "cycles") || name == "instructions" || strings.HasPrefix(name, "cpu/") || strings.HasPrefix(name, "cpu_")
}

// isClock reports whether the period of an event is in nanoseconds.
func isClock(event string) bool {
	return strings.HasPrefix(event, "cpu-clock") || strings.HasPrefix(event, "task-clock")
}
