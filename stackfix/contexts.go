package stackfix

// contextSites are the lengths of contexts.
var contextSites = [...]int{outerSites, innerSites, longSites}

// contexts are the numbers of the contexts of one stack, or those that end with one frame: 1 and
// more, 0 if it has none of this length.
type contexts [len(contextSites)]int32

// A spelling is what contexts are made of, and what is asked of those.
type spelling struct {
	methods bool // whatever calls they are at; call sites otherwise
	first   int  // of contextSites that is asked for
	votes   int  // for what is missing that must agree
}

// Call sites come first. For who has no answer by these it is methods, and the shortest context is
// left out: where a method calls another one at several places, that is seen at each of them.
var (
	bySites   = spelling{first: 0, votes: wholeVotes}
	byMethods = spelling{methods: true, first: 1, votes: methodVotes}
)

// inner returns the contexts that tell what stands right above a stack: the two shortest that are asked for.
func (x *spelling) inner(of contexts) []int32 { return of[x.first : x.first+2] }

// letter is what a frame is in a context.
func (c *consensus) letter(f FrameID) uint32 {
	if c.by.methods && int(f) < len(c.mth) { // it may be a bridge
		return c.method(f)
	}
	return f
}
