package stackfix

import (
	"math"
	"slices"
)

// extend puts back frames of blk that overlapping cut neighbours show.
func (e *solver) extend(blk *block) bool {
	var best *side
	var bestP StackID
	var bestEvidence evidence
	var bestConf float64
	ds := [2]int{}
	for si, s := range []*side{&e.sides[2], &e.sides[3]} {
		if !s.ok {
			continue
		}
		d, bits, lead := e.shift(e.o, s.fs, si == 1)
		ds[si] = d
		if d <= 0 {
			continue
		}
		both := si == 1 && ds[0] > 0 && e.agree(e.sides[2].fs[:ds[0]], s.fs[:d])
		p := e.t.up(s.s, d)
		v := e.above(byOverlap, blk, p, bits, lead, both)
		conf := min(e.cal.confidence(v), s.conf, float64(blk.conf))
		if conf > bestConf {
			best, bestP, bestEvidence, bestConf = s, p, v, conf
		}
	}
	if best == nil {
		return false
	}
	return e.prepend(blk, bestP, bestEvidence, best.conf)
}

// sureExtension is how sure an extension must be, whatever is asked for: what it shows is
// evidence for others. Set by hand.
const sureExtension = 0.93

// prepend puts p before blk if the evidence v is good enough, and no better than
// donor.
func (e *solver) prepend(blk *block, p StackID, v evidence, donor float64) bool {
	if p = e.undisputed(p); p == 0 {
		return false
	}
	if e.judged && e.extRight(blk) {
		if verdict := e.extVerdict(blk, p); verdict >= 0 {
			e.rows = append(e.rows, row{v, verdict == 1, blk.whole, e.question(blk.truth, p)})
		}
	}
	conf := min(e.cal.confidence(v), donor, float64(blk.conf))
	if conf < max(e.minConf, sureExtension) {
		return false
	}
	blk.ext = e.t.Join(p, e.o)
	blk.conf = float32(conf)
	return true
}

// A caller never varies if its method was called at least leastCalls times, and by others in
// no more than one of strayCalls. How far such callers are believed is fitted: see unvarying.
// These are set by hand.
const (
	leastCalls = 2
	strayCalls = 200
)

// climb puts back callers that never vary.
func (e *solver) climb(blk *block) bool {
	m := e.method(e.o[0])
	e.stamp++
	for _, f := range e.o {
		e.mark(e.method(f))
	}
	up := e.fo[:0]
	least := int32(math.MaxInt32)
	for len(up) < mostFrames {
		c, n := e.m.methods[m].caller, e.m.methods[m].called
		if n < leastCalls || e.marked(c.m) {
			break
		}
		if k := e.m.methodCalls.count(c.m, m); k < n-n/strayCalls {
			break
		}
		least = min(least, n)
		up = append(up, c.f)
		m = c.m
		e.mark(m)
	}
	e.fo = up
	if len(up) == 0 {
		return false
	}
	slices.Reverse(up)
	if !e.prepend(blk, e.t.Join(0, up), evidence{kind: byCallers, calls: bucketOf(float64(least), unvarying[:])}, 1) {
		return false
	}
	blk.how = Caller
	return true
}

func (e *solver) mark(m MethodID) {
	for int(m) >= len(e.stamps) {
		e.stamps = append(e.stamps, make([]uint32, 1024)...)
	}
	e.stamps[m] = e.stamp
}

func (e *solver) marked(m MethodID) bool {
	return int(m) < len(e.stamps) && e.stamps[m] == e.stamp
}

// agree tells whether the shorter of a and b ends the longer.
func (e *solver) agree(a, b []FrameID) bool {
	n := min(len(a), len(b))
	a, b = a[len(a)-n:], b[len(b)-n:]
	for i := range a {
		if e.method(a[i]) != e.method(b[i]) {
			return false
		}
	}
	return true
}

// extRight tells of a judged world whether what blk was extended by is true.
func (e *solver) extRight(blk *block) bool {
	return blk.ext == blk.stack || e.extVerdict(blk, e.t.up(blk.ext, e.t.Depth(blk.ext)-e.t.Depth(blk.stack))) != 0
}

// extVerdict tells whether p stands above the recorded frames of blk in truth:
// 1 yes, 0 no, -1 not known.
func (e *solver) extVerdict(blk *block, p StackID) int {
	if e.t.Depth(blk.ext) > e.t.Depth(blk.stack) {
		// above what it was extended by already
		fs := e.o[:e.t.Depth(blk.ext)-e.t.Depth(blk.stack)]
		if e.t.up(blk.ext, len(fs)) != p {
			p = e.t.Join(p, fs)
		}
	}
	s := blk.truth
	for range e.t.Depth(blk.stack) {
		s = e.t.Parent(s)
	}
	n := 0
	for p != 0 && s != 0 {
		if e.method(e.t.Frame(p)) != e.method(e.t.Frame(s)) {
			return 0
		}
		p, s = e.t.Parent(p), e.t.Parent(s)
		n++
	}
	if p != 0 && blk.whole {
		return 0
	}
	if n == 0 {
		return -1
	}
	return 1
}

// shift finds how many frames t begins before o, the bits of the overlap, and
// by how many bits it leads. It is negative where o begins before t.
func (e *solver) shift(o, t []FrameID, after bool) (int, float64, float64) {
	top, second, bestD, bestBits := math.Inf(-1), math.Inf(-1), 0, 0.0
	try := func(d, k int, bits float64) {
		pops, pushes := len(t)-max(d, 0)-k, len(o)-max(-d, 0)-k
		if after {
			pops, pushes = pushes, pops
		}
		s := e.retain.log(pops, pushes) + beta*bits
		if s > top {
			second = top
			top, bestD, bestBits = s, d, bits
		} else if s > second {
			second = s
		}
	}
	e.tCalls.reset()
	for i, x := range [...]struct {
		a, b  []FrameID
		known *surprises
	}{{o, t, &e.calls}, {t, o, &e.tCalls}} {
		tried := 0
		var all []int32
		for d := i; d < len(x.b); d++ {
			if x.b[d] != x.a[0] {
				continue
			}
			if tried++; tried == fewPlaces {
				all = e.laps.find(x.a, x.b)
			}
			k, bits := 0, 0.0
			if all != nil {
				k = int(all[d])
				bits = e.frameBits(x.a, k, x.known)
			} else {
				k, bits = e.match(x.a, x.b[d:], x.known)
			}
			try(d*(1-2*i), k, bits)
		}
	}
	return bestD, bestBits, min(mostLead, top-second)
}
