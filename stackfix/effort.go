package stackfix

import "math"

// A recorder that walks stacks to their roots takes longer for deeper ones, even for those that it cuts: see
// [Sample].Effort. That tells little of a few frames, and nothing of which they are. But whole stacks
// are the shallow ones, so that wrong answers, which are made of these, mostly lack a good part of the
// stack: where the recorder took no longer than an answer takes, that speaks for it. That it took
// longer says little, as it may have been kept waiting.
//
// The numbers are set by hand, with ten recordings of real programs whose stacks were really cut. Of these 61.9
// instead of 61.7 in a hundred are exact; the other way, to make answers less sure that took longer, cost more
// right ones than wrong ones.
const (
	// newMethod is by how much more work a frame is whose method was not met in the stack before.
	newMethod = 2
	// leastSpread is the least error of an effort, and sharedSpread the share of it that samples in a row have in
	// common.
	leastSpread  = 0.1
	sharedSpread = 0.3
	// slower is by how much further off is what took longer than what took less.
	slower = 1.25
	// strayed is the density of what tells nothing, since the recorder was kept waiting; what is further off than
	// farOff does not either.
	strayed = 0.02
	farOff  = 1
	// mostFit is how much likelier an effort makes an answer at most.
	mostFit = 10
	// leastFit is how sure an answer must be at least to be worth a look at its effort.
	leastFit = 0.4
	// leavesWorth is how sure an answer is at most that contradicts what the whole stacks around it share, before its
	// effort is known.
	leavesWorth = 0.7
)

// lacks are by how much the logarithm of the work of a stack is greater than that of a wrong answer, with a
// standard deviation, and how often.
var lacks = [...]struct{ mean, deviation, share float64 }{{0.55, 0.35, 0.5}, {0.12, 0.12, 0.35}, {-0.3, 0.4, 0.15}}

// Work is the logarithm of how much work it is to walk a stack of so many frames, of so many
// methods: what is known of a method by now is found again at once.
func Work(frames, methods int) float64 {
	return math.Log(float64(max(1, frames+newMethod*methods)))
}

// A measure is what is known of the work that the stack of a block was.
type measure struct {
	effort    float64 // mean of its samples
	deviation float64 // of that from the true one; 0: it is not known
}

// look adds the effort of a sample of b.
func (b *block) look(s *Sample) {
	if s.Effort > 0 {
		b.effort += s.Effort
		b.looks++
	}
}

// measure returns that of b.
func (b *block) measure() measure {
	if b.looks == 0 || b.cut != Depth {
		return measure{}
	}
	spread := leastSpread
	if s := float64(b.spread); s > leastSpread { // not what is no number
		spread = s
	}
	n := float64(b.looks)
	return measure{float64(b.effort) / n, spread * math.Sqrt((1+sharedSpread*(n-1))/n)}
}

// fits is by how much likelier the effort is if the frames o under p are the whole stack than if
// they are not; 1 if it is not, or if it is not known.
func (e *engine) fits(x measure, p StackID, o []FrameID) float64 {
	if x.deviation == 0 {
		return 1
	}
	d := x.effort - e.work(p, o)
	if math.Abs(d) > farOff {
		return 1
	}
	side := x.deviation
	if d > 0 {
		side *= slower
	}
	z := d / side
	// Student's distribution of four degrees of freedom: few are far off
	right := 0.375 * math.Pow(1+z*z/4, -2.5) / (x.deviation * (1 + slower) / 2)
	wrong := 0.0
	for _, l := range lacks {
		s := math.Hypot(l.deviation, x.deviation)
		z := (d - l.mean) / s
		wrong += l.share * math.Exp(-z*z/2) / (s * math.Sqrt(2*math.Pi))
	}
	return max(1, min((right+strayed)/(wrong+strayed), mostFit))
}

// surer is how sure is what is this sure without the effort, which makes it so much likelier.
func surer(sure, fits float64) float64 { return sure * fits / (sure*fits + 1 - sure) }

// A Meter adds up how much work it is to walk a stack, frame by frame in any order. The zero value works.
type Meter struct {
	met             []uint32 // by method: the newest stack in which it was
	now             uint32
	frames, methods int
}

// Begin begins with a stack of which no frame was seen.
func (x *Meter) Begin() {
	x.now++
	x.frames, x.methods = 0, 0
}

// See adds a frame of a method.
func (x *Meter) See(m MethodID) {
	x.met = reach(x.met, int(m)+1)
	x.frames++
	if x.met[m] != x.now {
		x.met[m] = x.now
		x.methods++
	}
}

// Work is that of the frames seen; see [Work].
func (x *Meter) Work() float64 { return Work(x.frames, x.methods) }

// work is that of the frames o under p.
func (e *engine) work(p StackID, o []FrameID) float64 {
	e.meter.Begin()
	for _, f := range o {
		e.meter.See(e.method(f))
	}
	for p != 0 {
		callers, f := e.t.Node(p)
		e.meter.See(e.method(f))
		p = callers
	}
	return e.meter.Work()
}
