package input

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/tracefix/tracefix/internal/relay"
	"github.com/tracefix/tracefix/nettrace"
)

// An Open returns the unpacked bytes of a trace from their start.
type Opener func() (io.ReadCloser, error)

// A Consumer takes the events of a reading.
type Consumer = nettrace.Consumer

// A Preparer is a Consumer most of whose work on an event needs no other one. If it is the only consumer
// of a reading, it gets batches of events, of which several are prepared at once.
type Preparer interface {
	Consumer
	// Prepare works on events and keeps in work, which is nil at first and used again for other
	// events, what it finds.
	Prepare(events *nettrace.Batch, work *any)
	// Prepared takes a batch, instead of Event, in order of time, and tells how many events it has looked at:
	// all, but with ErrStop.
	Prepared(events *nettrace.Batch, work any) (n int, err error)
}

// ErrStop is what a Consumer returns to get no more events.
var ErrStop = nettrace.ErrStop

// Read reads a trace for consumers. Each defect of the file goes to warn, which may be nil,
// and what is whole is read: an error means that nothing could be read, that a consumer
// failed, or that ctx has ended. The reader that it returns has been closed and knows all
// that there is to know about the file. The first reading of a file is told its defects;
// pass no warn for a second one.
//
// Where there are processors for it, the file is read and decoded ahead of the consumers.
func Read(ctx context.Context, open Opener, warn func(*nettrace.FormatError), consumers ...Consumer) (*nettrace.Reader, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	d := &delivery{ctx: ctx, warn: warn, consumers: slices.Clone(consumers)}
	if warn == nil {
		d.warn = func(*nettrace.FormatError) {}
	}
	d.size = batchAlone
	if relay.Workers() > 1 {
		d.size = batchBeside
	}
	var prepare func(*batch)
	if len(consumers) == 1 {
		if p, ok := consumers[0].(Preparer); ok {
			d.preparer = p
			prepare = func(b *batch) { p.Prepare(&b.events, &b.work) }
			d.size = min(d.size, batchPrepared)
		}
	}
	d.line = relay.New(prepare, d.take)
	defer d.line.Close()
	r, err := nettrace.NewReader(in, &nettrace.Options{Warn: d.defect, Hold: d.line.Batches() * d.size})
	if err != nil {
		_ = d.line.Send() // what it told
		return nil, err
	}
	for _, c := range consumers {
		c.Begin(r)
	}
	if len(consumers) == 0 {
		return r, nil
	}
	if err := d.events(r); err != nil && err != ErrStop {
		return r, err
	}
	for _, c := range consumers {
		c.End()
	}
	return r, nil
}

// How many events go to the consumers at once: on one processor few enough to stay in its first
// cache, on several so many that nobody waits for the other more often than need be. Batches that
// are prepared hold what that makes of them as well.
const (
	batchAlone    = 128
	batchBeside   = 1024
	batchPrepared = 512
)

// A batch is what goes from the goroutine that reads to that of the consumers.
type batch struct {
	events  nettrace.Batch
	defects []defect
	work    any // of a Preparer
}

// A defect was met when so many events of its batch were read.
type defect struct {
	at   int
	what *nettrace.FormatError
}

// A delivery takes the events of a reading to its consumers.
type delivery struct {
	ctx       context.Context
	line      *relay.Line[batch]
	size      int // of a batch
	warn      func(*nettrace.FormatError)
	consumers []Consumer // that have not stopped
	preparer  Preparer   // the only consumer, if it is one
	event     nettrace.Event
}

// defect keeps what the reader tells in its place among the events.
func (d *delivery) defect(e *nettrace.FormatError) {
	b := d.line.Batch()
	b.defects = append(b.defects, defect{b.events.Len(), e})
}

// events reads all events. It returns ErrStop if no consumer wants more.
func (d *delivery) events(r *nettrace.Reader) error {
	for {
		err := r.ReadBatch(&d.line.Batch().events, d.size)
		if err == nil {
			if err := d.line.Send(); err != nil {
				return err
			}
			continue
		}
		damage, ok := Damage(r, err)
		if ok && damage != nil {
			d.defect(damage)
		}
		_ = d.line.Send() // Close tells it, too
		if first := d.line.Close(); first != nil || ok {
			return first
		}
		return err
	}
}

// take gives a batch to the consumers.
func (d *delivery) take(b *batch) error {
	defer func() { b.defects = b.defects[:0] }()
	if err := d.ctx.Err(); err != nil {
		return err
	}
	defects := b.defects
	if d.preparer != nil {
		n, err := d.preparer.Prepared(&b.events, b.work)
		for _, x := range defects {
			if err == nil || x.at < n {
				d.warn(x.what)
			}
		}
		return err
	}
	for i := 0; b.events.Next(&d.event); i++ {
		for len(defects) > 0 && defects[0].at <= i {
			d.warn(defects[0].what)
			defects = defects[1:]
		}
		if err := d.deliver(); err != nil {
			return err
		}
	}
	for _, x := range defects {
		d.warn(x.what)
	}
	return nil
}

// deliver gives the event to all consumers that have not stopped.
func (d *delivery) deliver() error {
	for i := 0; i < len(d.consumers); i++ {
		switch err := d.consumers[i].Event(&d.event); {
		case err == nil:
		case errors.Is(err, ErrStop):
			d.consumers = slices.Delete(d.consumers, i, i+1)
			i--
			if len(d.consumers) == 0 {
				return ErrStop
			}
		default:
			return err
		}
	}
	return nil
}

// Damage tells what the error that ended the reading of r says about the trace: a
// defect of its format or of the compression around it, after which what was read
// still counts. It is nil at the proper end, and where the defect was told to Warn
// before. What input does not take for broken is no damage: ok is false.
func Damage(r *nettrace.Reader, err error) (d *nettrace.FormatError, ok bool) {
	switch {
	case err == io.EOF:
		return nil, true
	case !Broken(err):
		return nil, false
	case errors.As(err, &d):
		if errors.Is(err, nettrace.ErrDamaged) {
			return nil, true // Warn was told of each place
		}
		return d, true
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // nettrace put the offset before it
	}
	return &nettrace.FormatError{Offset: r.InputOffset(), Where: "compressed data", Err: err}, true
}
