package load

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

// TestRespell holds that a flipped bit in the type of a method or of its parameters is seen by the
// other methods that have them, and that names which people give are left as they are.
func TestRespell(t *testing.T) {
	for name, c := range map[string]struct{ odd, want string }{
		"type":                      {"int64 [Lab] Lab.Chahn.Shared::S038(class Lab.Walk)[Tier1]", "int64 [Lab] Lab.Chain.Shared::S038(class Lab.Walk)[Tier1]"},
		"assembly":                  {"int64 [Lcb] Lab.Chain.Shared::S038(class Lab.Walk)[Tier1]", "int64 [Lab] Lab.Chain.Shared::S038(class Lab.Walk)[Tier1]"},
		"punctuation":               {"int64 [Lab] Lab/Chain.Shared::S038(class Lab.Walk)[Tier1]", "int64 [Lab] Lab.Chain.Shared::S038(class Lab.Walk)[Tier1]"},
		"parameters":                {"int64 [Lab] Lab.Chain.Shared::S038(class Lab/Walk)[Tier1]", "int64 [Lab] Lab.Chain.Shared::S038(class Lab.Walk)[Tier1]"},
		"two bits":                  {"int64 [Lab] Lab.Chajj.Shared::S038(class Lab.Walk)[Tier1]", ""},
		"another method":            {"int64 [Lab] Lab.Chain.Shared::S138(class Lab.Walk)[Tier1]", ""},
		"another letter at the end": {"int64 [Lab] Lab.Chain.Sharee::S038(class Lab.Walk)[Tier1]", ""},
		"another case":              {"int64 [Lab] Lab.ChaIn.Shared::S038(class Lab.Walk)[Tier1]", ""},
		"no type":                   {"memcpy", ""},
	} {
		if c.want == "" {
			c.want = c.odd
		}
		p := newSymbols(profile.NewTable(), ByTime, nil)
		add := func(text string, offset int64) {
			s := nativeSymbol{name: uint32(len(p.text)), offset: offset}
			p.text = append(p.text, text...)
			s.end = uint32(len(p.text))
			p.symbols = append(p.symbols, s)
		}
		for i := range manySymbols {
			add(fmt.Sprintf("int64 [Lab] Lab.Chain.Shared::S%03d(class Lab.Walk)[Tier1]", i), int64(i))
		}
		add(c.odd, 100)
		p.respell()
		s := p.symbols[manySymbols]
		assert.Equal(t, c.want, string(p.text[s.name:s.end]), name)
		assert.Len(t, p.respelled, map[bool]int{false: 0, true: 1}[c.want != c.odd], name)
	}
}
