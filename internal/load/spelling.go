package load

import (
	"bytes"
	"math/bits"

	"github.com/tracefix/tracefix/nettrace"
)

// A recording has no checksum, and a flipped bit in the name of a method makes another name of it. In
// what perf's map has of a managed method, the type stands in front of each of its methods, and the types of
// its parameters behind it: what is only there once, and one bit away from what many symbols have, is that.

// manySymbols are enough to know the spelling of a part by.
const manySymbols = 8

// maxRespelled bounds what is put right: files are not hit more often, but for one made for it.
const maxRespelled = 64

// A respelled is a part of the text of a symbol that was put right.
type respelled struct {
	offset  int64 // of the event
	was, is string
	at      int  // of the byte that was hit, in the text
	right   byte // what it is
}

// partsOf returns what stands around the name of the method in the text of a symbol: "[Lab] Lab.Chain" and
// "(int32)" of "int64 [Lab] Lab.Chain::Alpha(int32)[Tier1]", as positions.
func partsOf(text []byte) (parts [2][2]int) {
	to := bytes.Index(text, []byte("::"))
	if to < 0 {
		return parts
	}
	from := bytes.LastIndex(text[:to], []byte(" [")) + 1
	if from == 0 && (to == 0 || text[0] != '[') {
		return parts
	}
	parts[0] = [2]int{from, to}
	open, end := bytes.IndexByte(text[to:], '('), bytes.LastIndexByte(text, ')')
	if open >= 0 && to+open < end {
		parts[1] = [2]int{to + open, end + 1}
	}
	return parts
}

// respell puts right the parts of symbols that a flipped bit has hit.
func (p *symbols) respell() {
	for part := range 2 {
		p.respellPart(part)
	}
}

func (p *symbols) respellPart(part int) {
	count := map[string]int{}
	for i := range p.symbols {
		s := &p.symbols[i]
		text := p.text[s.name:s.end]
		if at := partsOf(text)[part]; at[1] > 0 {
			count[string(text[at[0]:at[1]])]++
		}
	}
	// Of two halves a flipped bit leaves one as it was.
	halves := map[string][]string{}
	for t, n := range count {
		if n >= manySymbols {
			for _, half := range halvesOf(t) {
				halves[half] = append(halves[half], t)
			}
		}
	}
	if len(halves) == 0 {
		return
	}
	for i := range p.symbols {
		s := &p.symbols[i]
		text := p.text[s.name:s.end]
		at := partsOf(text)[part]
		t := text[at[0]:at[1]]
		if at[1] == 0 || count[string(t)] != 1 {
			continue
		}
		right, hit := "", -1
		for _, half := range halvesOf(string(t)) {
			for _, like := range halves[half] {
				if n := misspelled(t, like); n >= 0 && (hit < 0 || like < right) {
					right, hit = like, n
				}
			}
		}
		if hit >= 0 && len(p.respelled) < maxRespelled {
			p.respelled = append(p.respelled, respelled{s.offset, string(t), right, at[0] + hit, right[hit]})
			t[hit] = right[hit]
		}
	}
}

// halvesOf returns both halves of a part, marked as the one and the other.
func halvesOf(t string) [2]string { return [2]string{"<" + t[:len(t)/2], ">" + t[len(t)/2:]} }

// misspelled returns where a flipped bit makes a name of another, or -1. Names of digits, of single
// letters and of another case are names that people give.
func misspelled(name []byte, right string) int {
	if len(name) != len(right) {
		return -1
	}
	at := -1
	for i := range name {
		if name[i] == right[i] {
			continue
		}
		if at >= 0 || bits.OnesCount8(name[i]^right[i]) != 1 {
			return -1
		}
		at = i
	}
	if at < 0 {
		return -1
	}
	was, is := name[at], right[at]
	switch {
	case !alphanumeric(was) || !alphanumeric(is):
		return at
	case !lower(was) || !lower(is):
		return -1
	case at == 0 || at+1 == len(right) || !alphanumeric(right[at-1]) || !alphanumeric(right[at+1]):
		return -1
	}
	return at
}

func lower(c byte) bool { return 'a' <= c && c <= 'z' }

func alphanumeric(c byte) bool { return lower(c) || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

// respelledPayload returns the payload of a symbol with the part as it was put right.
func respelledPayload(ev *nettrace.Event, r respelled) []byte {
	var s nettrace.Symbol
	if ev.Symbol(&s) != nil || len(s.Name.Raw()) <= r.at {
		return ev.Payload
	}
	at := bytes.Index(ev.Payload, s.Name.Raw())
	if at < 0 {
		return ev.Payload
	}
	payload := bytes.Clone(ev.Payload)
	payload[at+r.at] = r.right
	return payload
}
