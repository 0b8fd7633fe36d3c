// Package export writes a profile.Profile in the formats that viewers open. Each
// format is one file with one function of the form
//
//	func Format(w io.Writer, p *profile.Profile, o Options) error
//
// The writers stream: what they hold grows with the methods and stacks of the
// profile, never with the output. Times stay integer nanoseconds up to the digits, so
// that spans which touch or nest in the profile do so in every file.
package export

import (
	"errors"
	"io"
	"math"
	"slices"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/profile"
)

// Options of all writers. The zero value works.
type Options struct {
	// Name is the title of the trace; empty: the profile's source.
	Name string
	// Exporter is the name and version of this program; empty: "tracefix".
	Exporter string
	// Plain leaves out the marks on what a repair inserted.
	Plain bool
	// Tracks are the groups of things to write: "cpu" is the sampled stacks, the
	// others are groups of profile.Track. nil is everything.
	Tracks []string
	// ByThread keeps the threads apart in formats that merge equal stacks (folded).
	ByThread bool
	// Counts writes numbers of samples instead of time (folded).
	Counts bool
	// Weights are what stacks are weighed by: profile.TimeWeight is the time of the samples,
	// any other the name of one of the profile's Weights. nil is time.
	Weights []string
	// Warn is told of what a format could not hold as it was; nil drops it.
	Warn func(string)
}

func (o *Options) title(p *profile.Profile) string {
	if o.Name != "" {
		return o.Name
	}
	return p.Meta.Source
}

func (o *Options) exporter() string {
	if o.Exporter != "" {
		return o.Exporter
	}
	return "tracefix"
}

func (o *Options) warn(text string) {
	if o.Warn != nil {
		o.Warn(text)
	}
}

// whole rounds an amount for a format that has integers of 64 bits only, and notes in beyond
// whether it has to be cut.
func whole(v float64, beyond *bool) int64 {
	switch v = math.Round(v); {
	case v >= 1<<63:
		*beyond = true
		return math.MaxInt64
	case v < -1<<63:
		*beyond = true
		return math.MinInt64
	}
	return int64(v)
}

// warnBeyond tells of what whole cut.
func (o *Options) warnBeyond(beyond bool) {
	if beyond {
		o.warn("amounts beyond " + thousands(math.MaxInt64) + " are written as that: the format has no larger numbers")
	}
}

// warnNegative tells of stacks that weigh less than nothing, such as what became less in a comparison
// of two profiles, where a format cannot hold that.
func (o *Options) warnNegative(n int) {
	if n > 0 {
		o.warn("stacks that weigh less than nothing, which this format cannot show, and are left out: " + thousands(int64(n)))
	}
}

// wants says whether a group of things is to be written.
func (o *Options) wants(group string) bool {
	return o.Tracks == nil || slices.Contains(o.Tracks, group)
}

// ErrOneWeight reports a format that can show one weight at a time.
var ErrOneWeight = errors.New("this format shows one weight at a time; pprof and ndjson hold several")

// weights returns whether the time of samples is wanted, and which of p.Weights are.
func (o *Options) weights(p *profile.Profile) (time bool, values []int) {
	if o.Weights == nil {
		return true, nil
	}
	for _, name := range o.Weights {
		if name == profile.TimeWeight {
			time = true
		} else if i := p.WeightNamed(name); i >= 0 {
			values = append(values, i)
		}
	}
	return time, values
}

// oneWeight is weights for a format that shows one: the index in p.Weights, -1 for time.
func (o *Options) oneWeight(p *profile.Profile) (int, error) {
	time, values := o.weights(p)
	switch {
	case time && len(values) == 0:
		return -1, nil
	case !time && len(values) == 1:
		return values[0], nil
	}
	return -1, ErrOneWeight
}

// threads returns the threads whose sampled stacks are to be written.
func (o *Options) threads(p *profile.Profile) []*profile.Thread {
	if !o.wants("cpu") {
		return nil
	}
	return p.Threads
}

// bufferSize is what is written at once: large enough that a call per buffer costs
// nothing, small enough to stay in the cache.
const bufferSize = 128 << 10

// A buffer collects output. Its users append to b and call flushed once per event.
type buffer struct {
	w   io.Writer
	b   []byte
	err error
}

func newBuffer(w io.Writer) *buffer { return &buffer{w: w, b: make([]byte, 0, bufferSize+16<<10)} }

// flushed writes what was collected if it is enough, and says whether to go on.
func (o *buffer) flushed() bool {
	if len(o.b) < bufferSize {
		return true
	}
	o.flush()
	return o.err == nil
}

func (o *buffer) flush() error {
	if o.err == nil && len(o.b) > 0 {
		o.b, o.err = relay.Give(o.w, o.b)
	}
	o.b = o.b[:0]
	return o.err
}

// repairMarks writes the list of repairs as a further member of an object, for those who read
// the file again; ids are the numbers that it has for threads. Viewers pass over it.
func (o *buffer) repairMarks(p *profile.Profile, opts *Options, ids func(*profile.Thread) (pid, tid int64)) error {
	if opts.Plain || !opts.wants("cpu") {
		return nil
	}
	return profile.WriteRepairMarks(",\n"+`"tracefix":`, p.RepairMarks(ids), func(b []byte) error {
		o.b = append(o.b, b...)
		o.flushed()
		return o.err
	})
}

func (o *buffer) str(s string) { o.b = append(o.b, s...) }
