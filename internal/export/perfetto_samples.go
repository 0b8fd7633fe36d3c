package export

import (
	"cmp"
	"slices"

	"github.com/tracefix/tracefix/profile"
)

// Fields of Perfetto's sampled stacks: profile_packet.proto, profile_common.proto and
// interned_data.proto.
const (
	packetPerfSample     = 66
	defaultsPerfSample   = 12
	internFunction       = 5
	internFrame          = 6
	internCallstack      = 7
	internMappingPath    = 17
	internMapping        = 19
	perfCPUClock         = 1 // PerfEvents.Counter: SW_CPU_CLOCK
	unwindMemoryInvalid  = 2
	unwindFramesExceeded = 6
)

// perfettoSamples writes the samples that were taken on a CPU as those of a profiler, each an
// instant with its stack. Perfetto draws them as tracks beside the slices and sums up what is
// selected as a flame graph. A stack that is still cut has an unwind error; how frames were put
// back stands at the slices.
type perfettoSamples struct {
	x                   *perfettoWriter
	functions, mappings map[string]uint64
	frames              []uint64 // by method; 0: not met
	lastFrame           uint64
	list                []uint64 // of the stack that is written, leaf first
	msg                 []byte
	stacks              map[profile.StackID]uint64
	offered             bool // the sequence has begun
}

// samples writes the CPU samples of all threads as one sequence of packets.
func (x *perfettoWriter) samples(threads []*profile.Thread, timing *profile.Timing) error {
	s := &perfettoSamples{x: x, functions: map[string]uint64{}, mappings: map[string]uint64{}, frames: make([]uint64, x.p.Table.Methods()), stacks: map[profile.StackID]uint64{}}
	for _, th := range threads {
		repairs := th.Repairs.Cursor()
		for st := range timing.Stretches(th) {
			if st.Type.OnCPU() {
				s.sample(th, &st.Sample, repairs.Of(st.Index), timing.Period)
			}
		}
		if x.err != nil {
			return x.err
		}
	}
	return nil
}

// begin starts the sequence, whose samples are ticks of a clock.
func (s *perfettoSamples) begin(period int64) {
	x := s.x
	x.newSequence()
	timebase := appendNumber(nil, 2, uint64(max(1, 1e9/max(1, period)))) // frequency
	timebase = appendNumber(timebase, 4, perfCPUClock)
	defaults := appendBytesField(nil, defaultsPerfSample, appendBytesField(nil, 1, timebase))
	b := appendNumber(nil, packetSequenceID, x.sequence)
	b = appendNumber(b, packetSequenceFlags, stateCleared)
	x.packet(appendBytesField(b, packetDefaults, defaults))
	x.head = appendNumber(x.head[:0], packetSequenceID, x.sequence)
	x.head = appendNumber(x.head, packetSequenceFlags, stateNeeded)
	x.interned = x.interned[:0]
}

func (s *perfettoSamples) sample(th *profile.Thread, sample *profile.Sample, r *profile.Repair, period int64) {
	x := s.x
	if !s.offered {
		s.offered = true
		s.begin(period)
	}
	stack := s.stack(sample.Stack)
	x.event = appendNumber(x.event[:0], 2, uint64(x.ids.pid(th.Owner())))
	x.event = appendNumber(x.event, 3, uint64(x.ids.tids[th]))
	if stack != 0 {
		x.event = appendNumber(x.event, 4, stack)
	}
	if cut := unwindError(sample, r); cut != 0 {
		x.event = appendNumber(x.event, 16, cut)
	}
	at := max(0, sample.Time) // what was before the start, Perfetto drops
	x.msg = appendNumber(x.msg[:0], packetTimestamp, uint64(at))
	x.msg = append(x.msg, x.head...)
	if len(x.interned) > 0 {
		x.msg = appendBytesField(x.msg, packetInternedData, x.interned)
		x.interned = x.interned[:0]
	}
	x.packet(appendBytesField(x.msg, packetPerfSample, x.event))
}

// unwindError says why a stack is not whole, 0 if it is.
func unwindError(s *profile.Sample, r *profile.Repair) uint64 {
	switch {
	case s.Cut == profile.Whole, r != nil && r.How != "bridge":
		return 0
	case s.Cut == profile.CutDepth:
		return unwindFramesExceeded
	}
	return unwindMemoryInvalid
}

// stack returns the iid of a stack, 0 for one without frames.
func (s *perfettoSamples) stack(id profile.StackID) uint64 {
	if iid, ok := s.stacks[id]; ok {
		return iid
	}
	t := s.x.p.Table
	frames := s.list[:0]
	for at := id; at != 0; at = t.Parent(at) {
		if m := t.Method(t.Frame(at)); !s.x.skip[m] {
			frames = append(frames, s.frame(m))
		}
	}
	s.list = frames
	if len(frames) == 0 {
		s.stacks[id] = 0
		return 0
	}
	iid := uint64(len(s.stacks) + 1)
	s.stacks[id] = iid
	b := appendNumber(s.msg[:0], 1, iid)
	for _, f := range slices.Backward(frames) { // root first
		b = appendNumber(b, 2, f)
	}
	s.msg = b
	s.x.interned = appendBytesField(s.x.interned, internCallstack, b)
	return iid
}

// frame returns the iid of a method's frame. What makes frames one for the importer is their
// mapping, their place in it and their name: the place is a number of our own.
func (s *perfettoSamples) frame(m profile.MethodID) uint64 {
	if iid := s.frames[m]; iid != 0 {
		return iid
	}
	s.lastFrame++
	iid := s.lastFrame
	s.frames[m] = iid
	me := s.x.p.Table.MethodAt(m)
	name := s.x.intern(s.functions, internFunction, cmp.Or(me.Name, "?"))
	b := appendNumber(appendNumber(nil, 1, iid), 2, name)
	b = appendNumber(b, 3, s.mapping(category(me)))
	b = appendNumber(b, 4, name)
	s.x.interned = appendBytesField(s.x.interned, internFrame, b)
	return iid
}

// mapping returns the iid of a module.
func (s *perfettoSamples) mapping(module string) uint64 {
	if iid, ok := s.mappings[module]; ok {
		return iid
	}
	iid := s.x.intern(s.mappings, internMappingPath, module) // the mapping's too
	s.x.interned = appendBytesField(s.x.interned, internMapping, appendNumber(appendNumber(nil, 1, iid), 7, iid))
	return iid
}
