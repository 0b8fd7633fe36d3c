package stackfix

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestWeigh holds that a state is as likely as all ways through it, forward and backward, whatever
// its own evidence says.
func TestWeigh(t *testing.T) {
	tree := stacks.NewTree()
	var samples []Sample
	for i, s := range []StackID{tree.Add(1, 2, 3, 9), tree.Add(1, 2, 3, 8), tree.Add(1, 2, 3, 9), tree.Add(1, 5, 6, 3, 9), tree.Add(1, 2, 3, 9)} {
		samples = append(samples, Sample{Time: int64(i), Stack: s})
	}
	e := newSolver(tree, Names{}, Options{Bridge: 100})
	e.world, _ = e.load([]Thread{{Samples: Slice(samples)}}, []int{0}, math.MaxInt)
	e.learnModel()
	e.retain.begin(&e.pairs)
	e.retain.finish()
	short, long := e.t.Add(1, 2), e.t.Add(1, 5, 6)
	open := func(own float64) moment {
		return moment{block: &block{}, overlap: []float64{0, 20, 40}, states: []state{
			{prefix: long, stack: e.t.Add(1, 5, 6, 3, 9), own: own}, {prefix: short, stack: e.t.Add(1, 2, 3, 9)},
		}}
	}
	known := func() moment {
		return moment{block: &block{}, states: []state{{prefix: e.t.Add(1, 2, 3, 9), stack: e.t.Add(1, 2, 3, 9)}}}
	}
	row := []moment{known(), open(0.5), open(0), known()}
	e.weigh(row)
	for i := range row {
		s, sure := row[i].best()
		assert.Equal(t, e.t.Add(1, 2, 3, 9), s.stack, "moment %d: what overlaps stays", i)
		assert.Greater(t, sure, 0.5)
		all := math.Inf(-1)
		for _, s := range row[i].states {
			all = addLogs(all, s.until+s.from)
		}
		assert.InDelta(t, row[0].states[0].from, all, 1e-9, "moment %d: all ways of all moments are the same ones", i)
	}
	_, sure := (&moment{}).best()
	assert.Zero(t, sure, "nothing is known")
}

// TestSecond holds that the answer that a second opinion gives too is taken only where the nearest whole
// stack before or after, or one that is near, shows it: code that is compiled anew is called otherwise.
func TestSecond(t *testing.T) {
	tree := stacks.NewTree()
	cut := tree.Add(7, 8, 9)
	old, anew := tree.Add(1, 2, 3), tree.Add(1, 3)
	for name, x := range map[string]struct {
		votes   []ballot // the nearest first
		minConf float64
		want    bool
	}{
		"nobody":               {nil, 0, false},
		"the nearest":          {[]ballot{{above: old, ago: phaseTime}, {above: anew, ago: 2 * phaseTime}}, 0, true},
		"only before that":     {[]ballot{{above: anew, ago: phaseTime}, {above: old, ago: 2 * phaseTime}}, 0, false},
		"the nearest after":    {[]ballot{{above: anew, ago: phaseTime}, {above: old, ago: -2 * phaseTime}}, 0, true},
		"near":                 {[]ballot{{above: anew, ago: 1}, {above: old, ago: phaseTime / 2}}, 0, true},
		"others":               {[]ballot{{above: anew, ago: 1}, {above: anew, ago: -1}}, 0, false},
		"as sure as confirmed": {[]ballot{{above: old}}, confirmed, true},
		"more is asked for":    {[]ballot{{above: old}}, 0.99, false},
	} {
		t.Run(name, func(t *testing.T) {
			q := &inquiry{consensus: &consensus{engine: newEngine(tree, Names{}, Options{MinConfidence: x.minConf})}, found: &finding{}}
			b := &block{stack: cut, ext: tree.Add(3, 7, 8, 9), guess: tree.Add(1, 2), guessHow: Chain, seconded: true}
			assert.Equal(t, x.want, q.second(b, &part{stack: cut}, assembled(x.votes)))
			if x.want {
				assert.Equal(t, []FrameID{1, 2, 3, 7, 8, 9}, q.found.whole)
				assert.Equal(t, Chain, q.found.how)
			} else {
				assert.Empty(t, q.found.whole)
			}
			b = &block{stack: cut, ext: cut, guess: old}
			assert.False(t, q.second(b, &part{stack: cut}, assembled(x.votes)), "no second opinion")
		})
	}
}

// assembled returns votes, the nearest first, as they are when they were called.
func assembled(votes []ballot) *assembly {
	a := &assembly{}
	for _, v := range votes {
		v.camp = a.add(v.above, true)
		a.votes = append(a.votes, v)
	}
	return a
}

// TestFickle holds that an answer is not confirmed where the whole stacks of a thread go over from it
// to another one and back as it happens: two clients of one middle, called at random, led to answers
// of which a third was wrong.
func TestFickle(t *testing.T) {
	tree := stacks.NewTree()
	cut := tree.Add(7, 8, 9)
	a, b := tree.Add(1, 2, 3), tree.Add(1, 4, 3)
	// by time; of two threads in turn where there are two
	votes := func(threads int, above ...StackID) *assembly {
		var all []ballot
		for i, s := range above {
			all = append(all, ballot{above: s, ago: int64(i)*phaseTime + 1, thread: i % threads})
		}
		return assembled(all)
	}
	atRandom := []StackID{a, b, a, a, b, a, b, b, a, b, a, a}
	phases := []StackID{a, a, a, a, a, a, b, b, b, b, b, b}
	ownWay := []StackID{a, b, a, b, a, b, a, b, a, b, a, b}
	for name, x := range map[string]struct {
		votes *assembly
		want  bool
	}{
		"at random":                {votes(1, atRandom...), true},
		"at random, two threads":   {votes(2, append(atRandom, atRandom...)...), true},
		"in phases":                {votes(1, phases...), false},
		"each thread its own":      {votes(2, ownWay...), false},
		"every second one":         {votes(1, ownWay...), true},
		"few":                      {votes(1, a, b, a, b), false},
		"all the same":             {votes(1, a, a, a, a, a, a), false},
		"two places in each stack": {twice(votes(1, ownWay...)), false},
	} {
		t.Run(name, func(t *testing.T) {
			q := &inquiry{consensus: &consensus{engine: newEngine(tree, Names{}, Options{})}, found: &finding{}}
			shown, n := q.showing(x.votes, []FrameID{1, 2, 3})
			assert.Equal(t, x.want, q.fickle(x.votes, shown, n))
			blk := &block{stack: cut, ext: cut, guess: a, guessHow: Chain, seconded: true}
			assert.Equal(t, !x.want, q.second(blk, &part{stack: cut}, x.votes), "the second opinion")
			blk = &block{stack: cut, ext: cut, guess: a, guessed: 0.9}
			assert.Equal(t, !x.want, q.hear(blk, x.votes).heard, "the last opinion")
			if around := fromThird(x.votes); around.camps[0].above == a && 2*around.camps[0].n >= around.n {
				assert.Equal(t, !x.want, q.confirm(blk, &part{stack: cut}, around), "votes for the answer")
			}
		})
	}
}

// twice makes one stack of each two votes: it holds the context in two places.
func twice(all *assembly) *assembly {
	for i := range all.votes {
		all.votes[i].ago = all.votes[i/2*2].ago
	}
	return all
}

// fromThird returns the votes as they are called from the time of the third one.
func fromThird(all *assembly) *assembly {
	votes, from := slices.Clone(all.votes), all.votes[2].ago
	for i := range votes {
		votes[i].ago -= from
	}
	slices.SortStableFunc(votes, func(a, b ballot) int { return cmp.Compare(max(a.ago, -a.ago), max(b.ago, -b.ago)) })
	return assembled(votes)
}
