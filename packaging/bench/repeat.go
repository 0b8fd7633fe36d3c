package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/nettrace"
)

// A repeater makes a long recording of a short one: it comes again and again, each time later and
// with other activities. The names of methods, which stand at the end, come once.
type repeater struct {
	trace string
	vary  string // what is also different each time; see variants

	w    *nettrace.Writer
	n    int64 // events so far
	last int64 // time of the newest event, ticks
	meta map[[2]any]*nettrace.Metadata
	addr []uint64
}

// variants are what a repeater can make many of.
var variants = map[string]string{
	"":        "times and activity ids differ",
	"threads": "every 256 events all threads are new ones",
	"stacks":  "every sample has a stack that no other one has",
}

// write writes a recording of about size bytes.
func (p *repeater) write(w io.Writer, size int64) error {
	out := &countedWriter{w: w}
	for i := 0; out.n < size || i == 0; i++ {
		if err := p.once(out, i, size); err != nil {
			return err
		}
	}
	return p.w.Close()
}

// once goes through the trace for the i-th time. The names come when size is reached.
func (p *repeater) once(out *countedWriter, i int, size int64) error {
	in, err := p.open()
	if err != nil {
		return err
	}
	defer in.Close()
	r, err := nettrace.NewReader(in, nil)
	if err != nil {
		return err
	}
	if p.w == nil {
		p.meta = map[[2]any]*nettrace.Metadata{}
		if p.w, err = nettrace.NewWriter(out, r.Header()); err != nil {
			return err
		}
	}
	first, shift := int64(math.MinInt64), int64(0)
	var ev nettrace.Event
	for {
		if err := r.Read(&ev); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if first == math.MinInt64 {
			first = ev.Time
			if i > 0 {
				shift = p.last + r.Header().Frequency/1000 - first
			}
		}
		// A program that goes on unloads no method as it ends: code that was loaded anew would be
		// other frames.
		if m := ev.Metadata; (m.Source == nettrace.SourceRundown || m.Role == nettrace.RoleMethodUnload) && out.n < size {
			continue
		}
		ev.Time += shift
		p.last = max(p.last, ev.Time)
		p.change(&ev, i)
		if err := p.w.Write(&ev); err != nil {
			return err
		}
	}
}

// change gives an event of the i-th repetition ids of its own.
func (p *repeater) change(ev *nettrace.Event, i int) {
	p.n++
	ev.Lost = 0
	key := [2]any{ev.Metadata.Provider, ev.Metadata.ID}
	if known := p.meta[key]; known != nil {
		ev.Metadata = known // a definition is written once
	} else {
		p.meta[key] = ev.Metadata
	}
	ev.ActivityID, ev.RelatedActivityID = otherID(ev.ActivityID, i), otherID(ev.RelatedActivityID, i)
	if ev.Metadata.Source == nettrace.SourceRundown {
		return
	}
	switch p.vary {
	case "threads":
		ev.ThreadID += uint64(p.n/256) << 20
	case "stacks":
		p.addr = ev.Stack.AppendTo(p.addr[:0])
		for at, n := 0, p.n; n > 0 && at < len(p.addr); at, n = at+1, n>>3 {
			p.addr[at] ^= uint64(n & 7) // nearly always in the same method
		}
		ev.Stack = nettrace.NewStack(p.addr)
	}
}

// otherID returns the id that an activity of the i-th repetition has.
func otherID(id nettrace.GUID, i int) nettrace.GUID {
	path, ok := activity.Decode(activity.ID(id), false)
	if !ok || path.Len() < 2 {
		return id
	}
	numbers := append([]uint32(nil), path.Numbers()...)
	numbers[1] += uint32(i) << 16
	other, err := activity.Encode(activity.NewPath(numbers...).WithProcess(path.Process()), activity.EncoderOld)
	if err != nil {
		return id
	}
	return nettrace.GUID(other)
}

// open opens the trace, unpacked.
func (p *repeater) open() (io.ReadCloser, error) {
	f, err := os.Open(p.trace)
	if err != nil || !strings.HasSuffix(p.trace, ".zst") {
		return f, err
	}
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

// repeated writes a recording of about so many bytes that repeats a trace.
func repeated(out io.Writer, trace, vary string, size int64) error {
	if _, ok := variants[vary]; !ok {
		return fmt.Errorf("-vary %s: it is threads or stacks", vary)
	}
	w := bufio.NewWriterSize(out, 1<<20)
	p := repeater{trace: trace, vary: vary}
	return errors.Join(p.write(w, size), w.Flush())
}

// A countedWriter counts what goes through it.
type countedWriter struct {
	w io.Writer
	n int64
}

func (c *countedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
