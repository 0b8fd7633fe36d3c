package tracefix

import (
	"context"
	"io"
	"slices"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/samples"
	"github.com/tracefix/tracefix/profile"
)

// A File is an opened trace. It can be read more than once, but only by one goroutine at a time.
type File struct {
	in  *input.File
	met Reading
}

// A Reading describes a reading of a File.
type Reading struct {
	Events int64 // events read; 0 for formats without events
	Lost   int64 // events that the recorder could not keep
	// Damages counts the places where the file breaks its format; Damage has the first hundred of
	// them. Everything whole around them was read.
	Damages int
	Damage  []Damage
}

// Reading describes the latest completed reading of f by Profile, Rewrite, Scan, Requests, Explain
// or Activities. The caller owns it.
func (f *File) Reading() Reading {
	r := f.met
	r.Damage = slices.Clone(r.Damage)
	return r
}

// Open opens a path, or standard input for "-", and recognizes its format by content. Standard
// input and named pipes are read to their end and kept in a temporary file. A flipped bit in what
// tells the content is put back, as by NewFile. One in packed content behind that only the command
// looks for, once it has read the file: then it reads the file again.
func Open(ctx context.Context, name string) (*File, error) {
	in, err := input.Open(ctx, name, nil)
	if err != nil {
		return nil, formatError(name, err)
	}
	return known(in)
}

// NewFile opens what r yields, which it keeps in a temporary file until Close: a trace is
// read more than once where a format demands it. The name is for messages and titles. It is mended
// as a file that Open opens.
func NewFile(name string, r io.Reader) (*File, error) {
	in, err := input.FromReader(name, r, nil)
	if err != nil {
		return nil, formatError(name, err)
	}
	return known(in)
}

// Read opens a trace, reads its profile and closes it: Open, File.Profile and File.Close in
// one, for everything but tracks of the group "events", which may need the file again.
func Read(ctx context.Context, name string, o *ReadOptions) (*profile.Profile, error) {
	f, err := Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Profile(ctx, o)
}

func known(in *input.File) (*File, error) {
	if in.Kind == input.Unknown {
		defer in.Close()
		return nil, formatError(in.Name, in.NotATrace())
	}
	return &File{in: in}, nil
}

// Timed reports whether the samples of the file have times. Folded stacks and pprof are sums: their
// samples are put one after the other, and a time range of them means nothing.
func (f *File) Timed() bool { return !samples.Sums(f.in.Kind) }

// TellsWork reports whether this kind of file can hold for which activities threads worked:
// nettrace and ndjson can.
func (f *File) TellsWork() bool { return f.events() || samples.TellsWork(f.in.Kind) }

// FromInput is for the command of this module, which also shows the progress of reading. Closing
// either of them is enough.
func FromInput(in *input.File) *File { return &File{in: in} }

// Kind is the format of the content: "nettrace", "netperf", "chromium", "speedscope", "pprof",
// "folded", "ndjson" or "perf script".
func (f *File) Kind() string { return f.in.Kind.String() }

// Close removes temporary files. Reading a File that had one then gives os.ErrClosed.
func (f *File) Close() error { return f.in.Close() }

// events reports whether f holds the events of a recording, and not only samples.
func (f *File) events() bool { return f.in.Kind.IsRecording() }
