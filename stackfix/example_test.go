package stackfix_test

import (
	"fmt"

	"github.com/tracefix/tracefix/stackfix"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// methods are those of frames that are names: each frame is a method of its own.
type methods struct{}

func (methods) Method(f stackfix.FrameID) stackfix.MethodID { return f }

// A recorder that keeps three frames cut the second of four samples. The stacks before and after it
// show what its outermost frame was called by.
func ExampleFix() {
	names := []string{"[frames lost]", "Main", "Serve", "Handle", "Query", "Read", "Parse"}
	tree := stacks.NewTree()
	whole, cut, other := tree.Add(1, 2, 3), tree.Add(3, 4, 5), tree.Add(1, 2, 6)
	samples := []stackfix.Sample{
		{Time: 1e6, Stack: whole},
		{Time: 2e6, Stack: cut, Cut: stackfix.Depth},
		{Time: 3e6, Stack: whole},
		{Time: 4e6, Stack: other},
	}
	result := stackfix.Fix(tree, methods{}, []stackfix.Thread{{Process: 1, Samples: stackfix.Slice(samples)}}, stackfix.Options{Bridge: 0})
	for _, r := range result.Repairs[0] {
		fmt.Printf("sample %d, %s:", r.Index, r.How)
		for _, f := range tree.AppendFrames(nil, r.Stack) {
			fmt.Print(" ", names[f])
		}
		fmt.Println()
	}
	// Output: sample 1, both-sides: Main Serve Handle Query Read
}
