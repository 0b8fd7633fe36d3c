package info

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/spans"
	"github.com/tracefix/tracefix/internal/speedscope"
)

// A speedscopeWalk counts what is in a speedscope file, value by value, so that a file
// that breaks off tells what stands before.
type speedscopeWalk struct {
	d              *json.Decoder
	where          string
	exporter, name string
	frames         int
	profiles       []*speedscopeProfile
}

// A speedscopeProfile is what we count of a profile.
type speedscopeProfile struct {
	name, unit      string
	start, end      float64 // in units
	last            float64 // time of the last event
	events, weights int64
	cut             bool // the file breaks off or breaks in its events
}

// unitsPerMs tells how many of a unit of speedscope make a millisecond.
var unitsPerMs = map[string]float64{"nanoseconds": 1e6, "microseconds": 1e3, "milliseconds": 1, "seconds": 1e-3}

// Speedscope tells the facts of a speedscope file.
func Speedscope(ctx context.Context, in *input.File, o *Options) (*Facts, error) {
	f := newFacts(in)
	rc, err := in.Reader()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	w := &speedscopeWalk{d: json.NewDecoder(contextReader{ctx, rc}), where: "the file"}
	if err := w.file(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !brokenJSON(err) && len(in.Layers) == 0 {
			return nil, fmt.Errorf("%s: offset %d: %w", in.Name, w.d.InputOffset(), err)
		}
		at := w.d.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = max(at, syntax.Offset-1)
		}
		f.damaged(report.Damage{Offset: at, Where: w.where, What: err.Error()})
	}
	f.Content = w.d.InputOffset()
	if w.exporter != "" {
		f.Properties = append(f.Properties, Property{"exporter", w.exporter})
	}
	if w.name != "" {
		f.Properties = append(f.Properties, Property{"name", w.name})
	}
	f.Properties = append(f.Properties, Property{"frames", report.Count(w.frames)})
	for i, p := range w.profiles {
		per, known := unitsPerMs[p.unit]
		if !known {
			per = 1
		}
		if p.cut && p.events > 0 {
			p.end = p.last // the rest of it is not there
		}
		t := &Thread{TID: uint64(i + 1), Name: p.name, Events: p.events, Samples: p.weights, FirstMs: p.start / per, LastMs: p.end / per}
		f.Threads = append(f.Threads, t)
		f.Events += t.Events
		f.DurationMs = max(f.DurationMs, t.LastMs-t.FirstMs)
	}
	if n := len(w.profiles); n == 0 {
		f.Verdicts = append(f.Verdicts, Verdict{Topic: "stacks", State: None, Text: "the file holds no profiles"})
	} else {
		if err := f.speedscopeStacks(ctx, in); err != nil {
			return nil, err
		}
		v := Verdict{Topic: "stacks", State: Good, Text: fmt.Sprintf("%d profile%s, one for each thread", n, report.Plural(n))}
		if f.Stacks != nil {
			v.Text += "; "
			f.spanStacks(&v)
		}
		f.Verdicts = append(f.Verdicts, v)
	}
	if f.Damages > 0 {
		f.Verdicts = append(f.Verdicts, f.fileVerdict())
	}
	return f, nil
}

// speedscopeStacks counts the sampled stacks as for a Chromium trace: the events of the
// file are those of one. What is damaged in it is told already.
func (f *Facts) speedscopeStacks(ctx context.Context, in *input.File) error {
	open := func() (io.ReadCloser, error) {
		return speedscope.Events(in.Reader, func(*speedscope.FormatError) {})
	}
	t, err := spans.Read(ctx, open, &spans.Options{Source: in.Name, Salvage: true, Lean: true})
	if err != nil {
		return ctx.Err() // the other facts stand
	}
	s := &t.Facts
	f.stacksOf(t)
	if f.Stacks == nil || len(s.Threads) != len(f.Threads) {
		return nil
	}
	for i, th := range f.Threads {
		th.Samples, th.Cut, th.Spikes = int64(s.Threads[i].Samples), int64(s.Threads[i].Cut), int64(s.Threads[i].Spikes)
	}
	return nil
}

// brokenJSON reports whether an error is about the text and not about reading it.
func brokenJSON(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, errKind)
}

var errKind = errors.New("unexpected kind of value")

// contextReader ends with the error of a context that is over.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func (w *speedscopeWalk) file() error {
	err := w.object(func(key string) error {
		w.where = key
		switch key {
		case "exporter":
			return w.d.Decode(&w.exporter)
		case "name":
			return w.d.Decode(&w.name)
		case "shared":
			return w.object(func(key string) error {
				if key != "frames" {
					return speedscope.Skip(w.d)
				}
				return w.array(func() error {
					if err := speedscope.Skip(w.d); err != nil {
						return err
					}
					w.frames++
					return nil
				})
			})
		case "profiles":
			return w.array(w.profile)
		}
		return speedscope.Skip(w.d)
	})
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (w *speedscopeWalk) profile() error {
	p := &speedscopeProfile{}
	seen := false
	return w.object(func(key string) error {
		if !seen {
			seen = true
			w.profiles = append(w.profiles, p)
		}
		switch key {
		case "name":
			return w.d.Decode(&p.name)
		case "unit":
			return w.d.Decode(&p.unit)
		case "startValue":
			return w.d.Decode(&p.start)
		case "endValue":
			return w.d.Decode(&p.end)
		case "events":
			err := w.array(func() error {
				var e struct {
					At float64 `json:"at"`
				}
				if err := w.d.Decode(&e); err != nil {
					return err
				}
				p.last = e.At
				p.events++
				return nil
			})
			p.cut = err != nil
			return err
		case "weights":
			return w.array(func() error {
				if err := speedscope.Skip(w.d); err != nil {
					return err
				}
				p.weights++
				return nil
			})
		}
		return speedscope.Skip(w.d)
	})
}

// open reads the delimiter that a value begins with.
func (w *speedscopeWalk) open(want json.Delim) error {
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("%w: %v instead of %v", errKind, t, want)
	}
	return nil
}

func (w *speedscopeWalk) object(each func(key string) error) error {
	if err := w.open('{'); err != nil {
		return err
	}
	for w.d.More() {
		t, err := w.d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if err := each(key); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

func (w *speedscopeWalk) array(each func() error) error {
	if err := w.open('['); err != nil {
		return err
	}
	for w.d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}
