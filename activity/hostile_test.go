package activity

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// idOf is an id that is not a path.
func idOf(n int) (id ID) {
	binary.LittleEndian.PutUint64(id[:], uint64(n))
	id[15] = 0xff
	return id
}

// hops counts the rows on the way from row i to the last.
func hops(next func(int32) int32, i int32) int {
	n := 0
	for ; i >= 0; i = next(i) {
		n++
	}
	return n
}

// The search for an open row does not go through all closed ones each time: neither
// through those of one id nor through those above.
func TestClosedRowsArePassedOnce(t *testing.T) {
	const n = 1000
	b := NewBuilder(nil)
	event := func(name string, op Opcode, id, related ID) {
		b.Add(&Event{Time: int64(b.rows.Len()), Thread: 1, Process: 1, Provider: "P", Name: name, Opcode: op, ID: id, Related: related})
	}
	for range n {
		event("WorkStart", Start, idOf(1), ID{})
		event("WorkStop", Stop, idOf(1), ID{})
		event("Info", Info, idOf(1), ID{})
	}
	newest := func(id ID) int32 {
		i := b.known(&owned{1, id})
		require.GreaterOrEqual(t, i, int32(0))
		return i
	}
	assert.LessOrEqual(t, hops(func(i int32) int32 { return rowOf(b.older, i) }, newest(idOf(1))), 2)

	event("RootStart", Start, idOf(2), ID{})
	for i := range n {
		event("CallStart", Start, idOf(3+i), idOf(2+i))
	}
	for i := range n {
		event("CallStop", Stop, idOf(3+i), ID{})
	}
	for range 2 {
		event("LateStart", Start, idOf(5000), idOf(2+n))
	}
	assert.LessOrEqual(t, hops(func(i int32) int32 { return b.rows.more(i).above - 1 }, newest(idOf(2+n))), 3)
	tree := b.Finish()
	late := tree.Rows[len(tree.Rows)-1]
	assert.Equal(t, "Root", tree.Rows[late.Parent].Name)
}

// A long chain of calls that did not stop ends with the outermost.
func TestUnfinishedChain(t *testing.T) {
	const n = 200_000
	b := NewBuilder(nil)
	for i := range n {
		b.Add(&Event{Time: int64(i), Thread: 1, Process: 1, Provider: "P", Name: "WorkStart", Opcode: Start, ID: idOf(1 + i), Related: idOf(i)})
	}
	b.Add(&Event{Time: n, Thread: 1, Process: 1, Provider: "P", Name: "WorkStop", Opcode: Stop, ID: idOf(1)})
	tree := b.Finish()
	require.Len(t, tree.Rows, n)
	for i := range tree.Rows {
		r := &tree.Rows[i]
		require.Equal(t, i-1, r.Parent)
		require.EqualValues(t, n, r.Stop)
	}
}
