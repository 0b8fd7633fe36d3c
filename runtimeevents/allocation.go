package runtimeevents

import (
	"math"

	"github.com/tracefix/tracefix/nettrace"
)

// An AllocationKind is the part of the heap that an object was allocated in.
type AllocationKind uint32

var allocationKinds = []string{"Small", "Large", "Pinned"}

// String returns "Small", "Large" or "Pinned", or "Unknown".
func (k AllocationKind) String() string { return nameOf(allocationKinds, uint32(k)) }

// An Allocation is one object that stands for others, as AllocationTick or
// AllocationSampled tells it. Both may be on at once; they are independent and not to
// be added up.
type Allocation struct {
	Type       nettrace.Text // valid as long as the event
	Kind       AllocationKind
	ObjectSize uint64 // 0: unknown
	// Amount is the number of bytes that AllocationTick tells to have been given out since
	// the tick before on that heap: what the tick stands for.
	Amount uint64
}

// IsAllocationTick reports whether ev is an AllocationTick: one object for each 100 KB or so.
func IsAllocationTick(ev *nettrace.Event) bool { return runtimeID(ev) == IDAllocationTick }

// IsAllocationSampled reports whether ev is an AllocationSampled (.NET 10): an object of
// which one byte was drawn at random.
func IsAllocationSampled(ev *nettrace.Event) bool { return runtimeID(ev) == IDAllocationSampled }

// ReadAllocationTick decodes the event.
func ReadAllocationTick(ev *nettrace.Event) (Allocation, error) {
	c := ev.Cursor()
	amount := c.U32()
	a := Allocation{Kind: AllocationKind(c.U32())}
	err := c.Err()
	if ev.Version >= 1 {
		c.U16()
	}
	if ev.Version >= 2 {
		a.Amount = c.U64()
		c.Pointer() // type
		a.Type = c.UTF16()
		c.U32() // heap
		err = c.Err()
	}
	if a.Amount == 0 {
		a.Amount = uint64(max(0, int32(amount))) // some old runtimes overflow it
	}
	if ev.Version >= 4 {
		c.Pointer() // address
		a.ObjectSize = c.U64()
	}
	return a, err
}

// ReadAllocationSampled decodes the event.
func ReadAllocationSampled(ev *nettrace.Event) (Allocation, error) {
	c := ev.Cursor()
	a := Allocation{Kind: AllocationKind(c.U32())}
	c.U16()
	c.Pointer() // type
	a.Type = c.UTF16()
	c.Pointer() // address
	a.ObjectSize = c.U64()
	return a, c.Err()
}

// sampledEvery is the mean distance in bytes of two draws of AllocationSampled.
const sampledEvery = 102400

// SampledProbability is the probability that AllocationSampled shows an object of this size.
func SampledProbability(size uint64) float64 {
	// 1 - (1-p)^size without losing the digits of small sizes
	return -math.Expm1(float64(size) * math.Log1p(-1.0/sampledEvery))
}

// SampledBytes is how many bytes a sampled object of this size stands for.
func SampledBytes(size uint64) float64 {
	if size == 0 {
		return 0
	}
	return float64(size) / SampledProbability(size)
}

// SampledVariance is what a sampled object of this size adds to the variance of the sum
// of the bytes of any group it is in.
func SampledVariance(size uint64) float64 {
	if size == 0 {
		return 0
	}
	p := SampledProbability(size)
	w := float64(size) / p
	return w * w * (1 - p)
}
