package spool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type plain struct {
	Is     bool
	Some   int64
	Few    uint8
	Word   uint32
	Long   uint64
	Int    int
	Short  int32
	Name   string
	Names  []string
	ID     [3]byte
	Parts  []plainPart
	Other  *plain
	Absent *plain
	Last   int64 // what is absent is told, or this is not where it was
}

type plainPart struct {
	At   int
	Text string
}

// Values come back as they were, empty lists too; bytes that are not those that were written make
// some value, and no panic.
func TestPacker(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		if r.IntN(50) == 0 {
			return strings.Repeat("é\x00\xff", r.IntN(300))
		}
		return fmt.Sprint("name ", r.IntN(2*maxWords))
	}
	var make func(depth int) *plain
	make = func(depth int) *plain {
		if depth == 0 {
			return nil
		}
		x := &plain{r.IntN(2) > 0, r.Int64() - r.Int64(), uint8(r.Uint32()), r.Uint32(), r.Uint64(), -r.Int(), int32(r.Uint32()), text(), nil, [3]byte{1, 0, 255}, []plainPart{}, make(depth - r.IntN(depth+1)/2 - 1), nil, r.Int64()}
		for range r.IntN(3) {
			x.Names = append(x.Names, text())
			x.Parts = append(x.Parts, plainPart{-r.IntN(1000), text()})
		}
		return x
	}
	var p Packer
	var values []*plain
	var packed [][]byte
	for range 20_000 {
		x := make(3)
		values, packed = append(values, x), append(packed, p.Append(nil, x))
	}
	assert.Equal(t, maxWords, len(p.words))
	for i, b := range packed {
		var got plain
		p.Unpack(b, &got)
		require.Equal(t, *values[i], got)
	}
	for i := range packed[0] {
		p.Unpack(packed[0][:i], &plain{})
		for range 50 {
			broken := slices.Clone(packed[0])
			broken[i] ^= byte(1 + r.IntN(255))
			p.Unpack(broken, &plain{})
		}
	}
	assert.Panics(t, func() { p.Append(nil, &struct{ F func() }{}) })
}
