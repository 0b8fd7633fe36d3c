package stacks_test

import (
	"fmt"

	"github.com/tracefix/tracefix/stackfix/stacks"
)

// Stacks that share their callers.
func Example() {
	names := []string{"main", "serve", "read", "write"}
	tree := stacks.NewTree()
	read := tree.Add(0, 1, 2)
	write := tree.Push(tree.Parent(read), 3) // another callee of the same callers
	for _, s := range []stacks.StackID{read, write} {
		for _, f := range tree.AppendFrames(nil, s) {
			fmt.Print(names[f], " ")
		}
		fmt.Println("depth", tree.Depth(s))
	}
	fmt.Println(tree.Len(), "stacks: the empty one, and one for each different row of callers")
	// Output:
	// main serve read depth 3
	// main serve write depth 3
	// 5 stacks: the empty one, and one for each different row of callers
}
