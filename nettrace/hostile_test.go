package nettrace

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Files made to be slow or to fill the memory. There is no limit of time here: what
// takes the square of a file's size would not end.
func TestHostile(t *testing.T) {
	const size = 4 << 20
	v4 := unhex(t, knownV4)[:102] // prologue and Trace object
	v6 := unhex(t, knownV6)[:20+4+0x35]
	object := func(name string, size int32, contents string) []byte {
		b := append([]byte{}, signatureV4...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
		b = append(append(b, name...), tagEnd)
		b = binary.LittleEndian.AppendUint32(b, uint32(size))
		return append(b, contents...)
	}
	fill := func(head, unit []byte) []byte {
		out := bytes.Clone(head)
		for len(out) < size {
			out = append(out, unit...)
		}
		return out
	}
	eventHeader := "\x14\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	var overlap []byte // v6 blocks that all claim 16 MB and hold the next ones
	for range 1000 {
		overlap = append(overlap, 0xff, 0xff, 0xff, 2)
		overlap = append(overlap, eventHeader...)
	}
	noise := make([]byte, size)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	kinds := bytes.Clone(noise) // v6 headers everywhere
	for i := 3; i < len(kinds); i += 4 {
		kinds[i] = kinds[i]%7 + 2
		kinds[i-1] = 0
	}
	backwards := bytes.NewBuffer(nil)
	backwards.Write(object("EventBlock", size/2, ""))
	for backwards.Len()%4 != 2 {
		backwards.WriteByte(0)
	}
	backwards.WriteString(eventHeader)
	for backwards.Len() < size/2 {
		backwards.WriteString("\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") // each a tick earlier
	}
	for name, data := range map[string][]byte{
		"unknown objects with wrong ends": fill(v4, object("Whatever", 3, "abcdefg")),
		"known objects with wrong ends":   fill(v4, object("StackBlock", 3, "abcdefg")),
		"objects of huge size":            fill(v4, object("EventBlock", 60<<20, "")),
		"objects of negative size":        fill(v4, object("EventBlock", -7, "")),
		"signatures without name":         fill(v4, signatureV4),
		"end tags between objects":        fill(v4, append([]byte{tagNull}, object("SPBlock", 0, "\x00\x06")...)),
		"noise v4":                        append(bytes.Clone(v4), noise...),
		"noise v6":                        append(bytes.Clone(v6), noise...),
		"headers v6":                      append(bytes.Clone(v6), kinds...),
		"overlapping blocks v6":           fill(v6, overlap),
		"tiny thread blocks v6":           fill(v6, []byte{5, 0, 0, 6, 3, 0, 1, 99, 0}),
		"new threads v6":                  fill(v6, []byte{5, 0, 0, 6, 3, 0, 1, 2, 7}),
		"empty stacks v6":                 fill(v6, []byte{16, 0, 0, 5, 1, 0, 0, 0, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
		"zeros v6":                        fill(v6, make([]byte, 4096)),
		"time goes back":                  append(bytes.Clone(v4), backwards.Bytes()...),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := NewReader(bytes.NewReader(data), nil)
			if err == nil {
				var ev Event
				for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
				}
			}
			runtime.ReadMemStats(&after)
			assert.Error(t, err)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64*len(data)), "memory")
		})
	}
}
