package info

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/report"
)

// speedscopeFile is what we count of a speedscope file.
type speedscopeFile struct {
	Exporter string `json:"exporter"`
	Name     string `json:"name"`
	Shared   struct {
		Frames []struct{} `json:"frames"`
	} `json:"shared"`
	Profiles []struct {
		Type       string     `json:"type"` // evented, sampled
		Name       string     `json:"name"`
		Unit       string     `json:"unit"`
		StartValue float64    `json:"startValue"`
		EndValue   float64    `json:"endValue"`
		Events     []struct{} `json:"events"`
		Weights    []float64  `json:"weights"`
	} `json:"profiles"`
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
	var s speedscopeFile
	d := json.NewDecoder(rc)
	if err := d.Decode(&s); err != nil {
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: offset %d: %w", in.Name, d.InputOffset(), err)
		}
		at := d.InputOffset()
		if syntax != nil {
			at = syntax.Offset
		}
		return nil, fmt.Errorf("%s: offset %d: %w; the file is cut off or no JSON", in.Name, at, err)
	}
	f.Content = d.InputOffset()
	if s.Exporter != "" {
		f.Properties = append(f.Properties, Property{"exporter", s.Exporter})
	}
	if s.Name != "" {
		f.Properties = append(f.Properties, Property{"name", s.Name})
	}
	f.Properties = append(f.Properties, Property{"frames", report.Count(len(s.Shared.Frames))})
	for i, p := range s.Profiles {
		per, known := unitsPerMs[p.Unit]
		if !known {
			per = 1
		}
		t := &Thread{TID: uint64(i + 1), Name: p.Name, Events: int64(len(p.Events)), Samples: int64(len(p.Weights)), FirstMs: p.StartValue / per, LastMs: p.EndValue / per}
		f.Threads = append(f.Threads, t)
		f.Events += t.Events
		f.DurationMs = max(f.DurationMs, t.LastMs-t.FirstMs)
	}
	if len(s.Profiles) == 0 {
		f.Verdicts = append(f.Verdicts, Verdict{Topic: "stacks", State: None, Text: "the file holds no profiles"})
	} else {
		f.Verdicts = append(f.Verdicts, Verdict{Topic: "stacks", State: Good, Text: fmt.Sprintf("%d profile%s, one for each thread", len(s.Profiles), plural(len(s.Profiles)))})
	}
	return f, nil
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
