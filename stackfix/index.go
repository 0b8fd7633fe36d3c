package stackfix

// levels are the lengths of context that the index knows.
var levels = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}

// votes are the prefixes that stand before one context.
type votes struct {
	p     [16]StackID
	n     [16]int32
	len   int
	total int32
}

type index struct {
	votes voteTable
	pow   [65]uint64
	heads []bool // methods that some window begins with
	h     []uint64
	nodes []StackID
}

// A voteTable holds the votes of each context.
type voteTable struct {
	ids numbering // of contexts: ctxKey
	all []votes
}

func (t *voteTable) reset() {
	t.ids.reset()
	t.all = t.all[:0]
}

// get returns the votes of key, or nil. They are valid until the next add.
func (t *voteTable) get(key uint64) *votes {
	if i := t.ids.get(key); i >= 0 {
		return &t.all[i]
	}
	return nil
}

// add makes empty votes for key if it has none.
func (t *voteTable) add(key uint64) {
	if t.ids.add(key) == len(t.all) {
		t.all = append(t.all, votes{})
	}
}

func ctxKey(h uint64, k int) uint64 { return h*31 + uint64(k) }

func (e *solver) hashes(fs []FrameID) []uint64 {
	h := append(e.idx.h[:0], 0)
	for i, f := range fs {
		h = append(h, h[i]*mul+uint64(e.method(f))+1)
	}
	e.idx.h = h
	return h
}

// buildIndex looks in all rooted stacks for the first frames of the cut ones.
func (e *solver) buildIndex() {
	x := &e.idx
	x.votes.reset()
	x.pow[0] = 1
	for i := 1; i < len(x.pow); i++ {
		x.pow[i] = x.pow[i-1] * mul
	}
	x.heads = x.heads[:0]
	done := make([]bool, e.t.Len())
	for i := range e.runs {
		for _, b := range e.runs[i].blocks {
			if b.rooted || done[b.ext] {
				continue
			}
			done[b.ext] = true
			e.fo = e.t.AppendFrames(e.fo[:0], b.ext)
			if len(e.fo) == 0 {
				continue
			}
			m := int(e.method(e.fo[0]))
			for m >= len(x.heads) {
				x.heads = append(x.heads, false)
			}
			x.heads[m] = true
			h := e.hashes(e.fo[:min(len(e.fo), 64)])
			for _, k := range levels {
				if k < len(h) {
					x.votes.add(ctxKey(h[k], k))
				}
			}
		}
	}
	seen := make([]bool, e.t.Len())
	for i := range e.runs {
		for _, b := range e.runs[i].blocks {
			if !b.rooted || done[b.ext] {
				continue
			}
			done[b.ext] = true
			e.fo = e.t.AppendFrames(e.fo[:0], b.ext)
			h := e.hashes(e.fo)
			s := b.ext
			D := len(e.fo)
			for len(x.nodes) <= D {
				x.nodes = append(x.nodes, 0)
			}
			old := 0
			for d := D; d > 0; d-- {
				x.nodes[d] = s
				if old == 0 && seen[s] {
					old = d
				}
				seen[s] = true
				s = e.t.Parent(s)
			}
			for q := range e.fo {
				if m := int(e.method(e.fo[q])); m >= len(x.heads) || !x.heads[m] {
					continue
				}
				for _, k := range levels {
					if q+k > D {
						break
					}
					v := x.votes.get(ctxKey(h[q+k]-h[q]*x.pow[k], k))
					if v == nil {
						break
					}
					if q+k > old {
						v.add(x.nodes[q])
					}
				}
			}
		}
	}
}

func (v *votes) add(p StackID) {
	v.total++
	for x := range v.len {
		if v.p[x] == p {
			v.n[x]++
			return
		}
	}
	if v.len < len(v.p) {
		v.p[v.len], v.n[v.len] = p, 1
		v.len++
	}
}

// ppm is what the contexts of all lengths say of the prefix of a window.
type ppm struct {
	p        []StackID
	w        []float64
	novel    float64
	level    int // of the longest context
	n        int // donors at the longest level
	q        int // different prefixes there
	unan     int // shortest context that has one prefix only
	unanN    int // its donors
	firstQ   int // different prefixes of the head alone
	distinct int // prefixes at the next shorter context that has more donors
}

// lookup blends the levels from the longest context down. A level speaks for
// the donors that longer ones have not heard.
func (e *solver) lookup(o []FrameID) *ppm {
	x := &e.ppm
	*x = ppm{p: x.p[:0], w: x.w[:0], novel: 1}
	h := e.hashes(o[:min(len(o), 64)])
	var above *votes
	for li := len(levels) - 1; li >= 0; li-- {
		l := levels[li]
		if l >= len(h) {
			continue
		}
		v := e.idx.votes.get(ctxKey(h[l], l))
		if v == nil || v.total == 0 {
			continue
		}
		if above == nil {
			x.level, x.n, x.q = l, int(v.total), v.len
		}
		if v.len == 1 {
			x.unan, x.unanN = l, int(v.total)
		}
		x.firstQ = v.len
		total := v.total
		if above != nil {
			total -= above.total
		}
		if total > 0 {
			distinct := 0
			for i := range v.len {
				if v.n[i] > above.count(v.p[i]) {
					distinct++
				}
			}
			if above != nil && x.distinct == 0 {
				x.distinct = distinct
			}
			esc := float64(max(distinct, 1)) / float64(int(total)+max(distinct, 1))
			for i := range v.len {
				n := v.n[i] - above.count(v.p[i])
				if n <= 0 {
					continue
				}
				w := x.novel * (1 - esc) * float64(n) / float64(total)
				k := 0
				for k < len(x.p) && x.p[k] != v.p[i] {
					k++
				}
				if k == len(x.p) {
					x.p = append(x.p, v.p[i])
					x.w = append(x.w, 0)
				}
				x.w[k] += w
			}
			x.novel *= esc
		}
		above = v
	}
	return x
}

func (v *votes) count(p StackID) int32 {
	if v == nil {
		return 0
	}
	for i := range v.len {
		if v.p[i] == p {
			return v.n[i]
		}
	}
	return 0
}
