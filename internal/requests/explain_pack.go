package requests

import (
	"encoding/binary"

	"github.com/tracefix/tracefix/httpphases"
)

// A packer makes explanations bytes, some tens each, and bytes explanations again; of their steps and the other side, which
// activities have not, it knows nothing. The zero value is useful.
type packer struct {
	b      []byte
	unpack bool
	words  []string // that many explanations hold: of methods, kinds and activities
	number map[string]int64
}

// maxWords is how many words have a number.
const maxWords = 1 << 16

// pack returns the bytes of an explanation, until the next call of a method.
func (p *packer) pack(x *httpphases.Explanation) []byte {
	p.b, p.unpack = p.b[:0], false
	p.explanation(x)
	return p.b
}

// unpackFrom returns the explanation of bytes.
func (p *packer) unpackFrom(b []byte) *httpphases.Explanation {
	own := p.b
	x := &httpphases.Explanation{}
	p.b, p.unpack = b, true
	p.explanation(x)
	p.b = own
	return x
}

func (p *packer) explanation(x *httpphases.Explanation) {
	t := &x.Time
	for _, n := range []*int64{&t.GC, &t.CPU, &t.Lock, &t.Sleep, &t.Wait, &t.IO, &t.Other, &t.Pool, &t.OtherSide, &t.Unknown, &t.Await, &x.CPUTotal, &x.PoolTotal} {
		p.int(n)
	}
	for i := range p.each(len(x.Exceptions), func(n int) { x.Exceptions = make([]httpphases.Exception, n) }) {
		e := &x.Exceptions[i]
		p.text(&e.Type)
		p.text(&e.Message)
		p.text(&e.Cause)
		p.int(&e.At)
		count := int64(e.Count)
		p.int(&count)
		e.Count = int(count)
	}
	for i := range p.each(len(x.Hot), func(n int) { x.Hot = make([]httpphases.MethodTime, n) }) {
		p.word(&x.Hot[i].Method)
		p.int(&x.Hot[i].Time)
	}
	for i := range p.each(len(x.Blocked), func(n int) { x.Blocked = make([]httpphases.StackTime, n) }) {
		s := &x.Blocked[i]
		p.word(&s.Kind)
		p.int(&s.Time)
		for k := range p.each(len(s.Frames), func(n int) { s.Frames = make([]string, n) }) {
			p.word(&s.Frames[k])
		}
	}
	for i := range p.each(len(x.Children), func(n int) { x.Children = make([]httpphases.Child, n) }) {
		c := &x.Children[i]
		p.word(&c.Name)
		p.text(&c.Path)
		p.int(&c.Start)
		took := int64(-1)
		if c.HasDuration {
			took = c.Duration
		}
		if p.int(&took); took >= 0 {
			c.Duration, c.HasDuration = took, true
		}
	}
}

// int packs or unpacks a number.
func (p *packer) int(n *int64) {
	if !p.unpack {
		p.b = binary.AppendVarint(p.b, *n)
		return
	}
	v, size := binary.Varint(p.b)
	if size <= 0 { // it could not be read: who asks for it asks for the error, too
		p.b = nil
		return
	}
	*n, p.b = v, p.b[size:]
}

// each packs the length of a list, or unpacks it and makes the list, and counts up to it.
func (p *packer) each(n int, room func(int)) int {
	v := int64(n)
	if p.int(&v); !p.unpack || v <= 0 {
		return n
	}
	n = int(min(v, int64(len(p.b)))) // each of the list takes a byte
	room(n)
	return n
}

// text packs or unpacks a text.
func (p *packer) text(s *string) {
	n := int64(len(*s))
	p.int(&n)
	if !p.unpack {
		p.b = append(p.b, *s...)
		return
	}
	n = max(0, min(n, int64(len(p.b))))
	*s, p.b = string(p.b[:n]), p.b[n:]
}

// word packs or unpacks a text that many explanations hold.
func (p *packer) word(s *string) {
	if p.unpack {
		n := int64(0)
		if p.int(&n); n < 0 {
			p.text(s)
		} else if n < int64(len(p.words)) {
			*s = p.words[n]
		}
		return
	}
	n, ok := p.number[*s]
	if !ok {
		if len(p.words) == maxWords {
			n = -1
			p.int(&n)
			p.text(s)
			return
		}
		if p.number == nil {
			p.number = map[string]int64{}
		}
		n = int64(len(p.words))
		p.words, p.number[*s] = append(p.words, *s), n
	}
	p.int(&n)
}
