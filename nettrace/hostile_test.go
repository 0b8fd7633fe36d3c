package nettrace

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/tracetest"
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

// objectV4 appends an object of v4 to a file, which must be what stands before it.
func objectV4(file []byte, name string, contents []byte) []byte {
	file = append(append(le32(append(file, signatureV4...), uint32(len(name))), name...), tagEnd)
	file = le32(file, uint32(len(contents)))
	for len(file)%4 != 0 {
		file = append(file, 0)
	}
	return append(append(file, contents...), tagEnd)
}

// Small blocks that wait among large ones that do not: what they hold, and what is
// kept for reuse, stays within the limits.
func TestHeldMemory(t *testing.T) {
	file := unhex(t, knownV4)[:102]
	header := append([]byte{20, 0, 1, 0}, make([]byte, 16)...)
	for round := range 100 {
		large := binary.AppendUvarint(append(bytes.Clone(header), 0x40), uint64(1+round))
		for range 20000 {
			large = append(large, 0x40, 0) // an event without anything, sorted
		}
		file = objectV4(file, "EventBlock", large)
		// not sorted, and late: it has to wait for the end
		file = objectV4(file, "EventBlock", binary.AppendUvarint(append(bytes.Clone(header), 0), 1<<40+uint64(round)))
	}
	r, err := NewReader(bytes.NewReader(append(file, tagNull)), &Options{MaxBuffered: 8 << 20})
	require.NoError(t, err)
	events, most := 0, 0
	var ev Event
	for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
		if events++; events%10000 != 0 {
			continue
		}
		blocks := map[*block]bool{}
		for i := range r.queue.heap {
			blocks[r.queue.heap[i].blk] = true
		}
		for _, b := range r.blocks {
			blocks[b] = true
		}
		sum := 0
		for b := range blocks {
			sum += cap(b.buf) + cap(b.rows)*rowSize
		}
		most = max(most, sum)
	}
	assert.Equal(t, io.EOF, err)
	assert.Equal(t, 100*20002, events)
	assert.Less(t, most, 8<<20+maxSpare)
	assert.Equal(t, int64(1), r.Stats().Defects, "no metadata; and delivered although older ones might follow?")
}

// Event blocks that begin inside each other, up to the next block that is one: how
// far each may reach, and where that next one is, is not found out for each anew.
func TestOverlappingBlocks(t *testing.T) {
	tracetest.Growth(t, 4000, func(n int) {
		const head = 16 + len("EventBlock") // of an object
		file := unhex(t, knownV4)[:102]
		for range n {
			file = le32(le32(append(file, tagBegin, tagBegin, tagNull), 3), 3) // a version that is not searched for
			file = append(le32(file, uint32(len("EventBlock"))), "EventBlock\x06"...)
			file = le32(file, 28)
			for len(file)%4 != 0 {
				file = append(file, 0)
			}
			file = append(append(file, 20, 0, 1, 0), make([]byte, 16)...)
			// one event, whose payload reaches to where the next block's begins
			next := (len(file)+8+head+4+3)/4*4 + 20
			file = append(file, 0xc0, 1, byte(next-len(file)-4)|0x80, 0, 1, 1, 1, 1)
		}
		file = append(file, bytes.Repeat([]byte{0xff}, 64)...)
		file = objectV4(file, "StackBlock", []byte{1, 0, 0, 0, 0, 0, 0, 0})
		r, err := NewReader(bytes.NewReader(file), nil)
		require.NoError(t, err)
		var ev Event
		for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
		}
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// What is looked for, counted or taken back at each place of damage must not cost as much as the
// file is long.
func TestManyDamages(t *testing.T) {
	v4, v6 := unhex(t, knownV4), unhex(t, knownV6)[:20+4+0x35]
	v4, defined := v4[:102], v4[:bytes.Index(v4, []byte("StackBlock"))-16]
	blockHeader := append([]byte{20, 0, 1, 0}, make([]byte, 16)...)
	threads := func(file []byte, n int) []byte {
		events := bytes.Clone(blockHeader)
		for i := range n {
			events = append(binary.AppendUvarint(append(events, 0x43, 1, 0), uint64(i+1)), 0, 1)
		}
		return objectV4(file, "EventBlock", events)
	}
	broken := func(file []byte, n int) []byte {
		for i := range n {
			events := append(bytes.Clone(blockHeader), 0xc3, 1, 0, 1, 0, 1, 0xff, 0xff, 0xff, 3)
			file = objectV4(file, "EventBlock", binary.AppendUvarint(events, uint64(i+1)))
		}
		return file
	}
	for name, test := range map[string]struct {
		n    int
		file func(n int) []byte
	}{
		"stacks of odd sizes": {2500, func(n int) []byte {
			rows := le32(le32(nil, 1), uint32(n))
			for i := range n {
				rows = append(le32(rows, 1), byte(i)|1)
			}
			return objectV4(bytes.Clone(v4), "StackBlock", rows)
		}},
		"rows of threads that are none": {4000, func(n int) []byte {
			size := 5 * n
			return append(append(bytes.Clone(v6), byte(size), byte(size>>8), byte(size>>16), byte(kindThread)), bytes.Repeat([]byte{3, 0, 1, 99, 0}, n)...)
		}},
		"events without a definition behind others": {5000, func(n int) []byte {
			events := bytes.Clone(blockHeader)
			for i := range n {
				events = append(events, 0x43, 1, 0, 1, 0, 1)
				if i > n/2 {
					events[len(events)-5] = 7
				}
			}
			return objectV4(bytes.Clone(defined), "EventBlock", events)
		}},
		"events with plain headers, broken ones among them": {20000, func(n int) []byte {
			events := append([]byte{20, 0, 0, 0}, make([]byte, 16)...)
			for i := range n {
				size := 76
				if i%followEvents == 0 || i == n-1 {
					size = 0
				}
				events = append(le32(le32(events, uint32(size)), 1), make([]byte, 72)...)
			}
			return objectV4(bytes.Clone(defined), "EventBlock", events)
		}},
		"numbers that go back": {5000, func(n int) []byte {
			events := bytes.Clone(blockHeader)
			for range n / 2 {
				events = append(binary.AppendUvarint(append(events, 0x43, 1), 1000), 1, 0, 1)
				events = append(binary.AppendUvarint(append(events, 0x43, 1), 1<<32-900), 1, 0, 1)
			}
			return objectV4(bytes.Clone(v4), "EventBlock", events)
		}},
		"broken blocks and threads": {2500, func(n int) []byte { return broken(threads(bytes.Clone(v4), n), n) }},
		"broken blocks and definitions": {2500, func(n int) []byte {
			rows := bytes.Clone(blockHeader)
			for i := range n {
				m := append(le32(nil, uint32(i+1)), 'P', 0, 0, 0, 7, 0, 0, 0, 0, 0)
				m = append(m, make([]byte, 20)...)
				rows = append(append(rows, 0xc0, 0, byte(len(m))), m...)
			}
			return broken(objectV4(bytes.Clone(v4), "MetadataBlock", rows), n)
		}},
		"events with one of two lists of labels in turn": {2000, func(n int) []byte {
			lists := le32(le32(nil, 1), 2)
			for range 2 {
				lists = append(append(lists, bytes.Repeat([]byte{labelLevel, 1}, n)...), labelLevel|0x80, 1)
			}
			events := append(bytes.Clone(blockHeader), bytes.Repeat([]byte{0x10, 0, 1, 0x10, 0, 2}, n/2)...)
			return blockV6(blockV6(bytes.Clone(v6), kindLabelList, lists), kindEvent, events)
		}},
		"events of v2 that claim to be large": {8000, func(n int) []byte {
			file := append([]byte(serialMagic), tagBegin, tagBegin, tagNull)
			file = append(le32(le32(le32(file, 2), 0), 5), "Trace\x06"...)
			file = append(file, make([]byte, 36)...)
			for range n {
				file = append(le32(le32(file, uint32(60*n)), 9), make([]byte, 52)...)
				file = append(le32(file, 56), make([]byte, 56)...)
			}
			return file
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tracetest.Growth(t, test.n, func(n int) {
				r, err := NewReader(bytes.NewReader(test.file(n)), nil)
				require.NoError(t, err)
				var ev Event
				for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
				}
			})
		})
	}
}

// blockV6 appends a block of v6 to a file.
func blockV6(file []byte, kind blockKind, contents []byte) []byte {
	return append(le32(file, uint32(len(contents))|uint32(kind)<<24), contents...)
}

// Fields and pairs of texts take a few bytes in a file, and many times as much in memory: how many
// are held is bounded, and what is too much is told.
func TestHeldDescriptions(t *testing.T) {
	v4, v6 := unhex(t, knownV4)[:102], unhex(t, knownV6)[:20+4+0x35]
	row := func(contents []byte) []byte {
		return append([]byte{byte(len(contents)), byte(len(contents) >> 8)}, contents...)
	}
	definitions := func(n int, rest []byte) []byte {
		file := bytes.Clone(v6)
		for i := range n {
			file = blockV6(file, kindMetadata, append([]byte{0, 0}, row(append(append(binary.AppendUvarint(nil, uint64(i+1)), 1, 'P', 1, 1, 'E'), rest...))...))
		}
		return file
	}
	fields := func(n int) []byte {
		return append([]byte{byte(n), byte(n >> 8)}, bytes.Repeat([]byte{2, 0, 0, byte(TypeInt32)}, n)...)
	}
	v4Fields := append(le32(nil, 1), 'P', 0, 0, 0, 1, 0, 0, 0, 0, 0)
	v4Fields = le32(append(v4Fields, make([]byte, 16)...), 1000)
	for range 1000 { // objects of objects
		v4Fields = le32(le32(v4Fields, uint32(TypeObject)), 200)
		v4Fields = append(append(v4Fields, bytes.Repeat([]byte{byte(TypeInt32), 0, 0, 0, 0, 0}, 200)...), 0, 0)
	}
	threads := bytes.Clone(v6)
	for i := range 20 {
		threads = blockV6(threads, kindThread, row(append(binary.AppendUvarint(nil, uint64(i+1)), bytes.Repeat([]byte{4, 0, 0}, 5000)...)))
	}
	head := bytes.Clone(v6[:len(v6)-13]) // without its pair
	head = append(le32(head[:len(head)-4], 100000), bytes.Repeat([]byte{0, 0}, 100000)...)
	copy(head[20:], le32(nil, uint32(len(head)-24)|uint32(kindTrace)<<24))
	for name, file := range map[string][]byte{
		"fields of many definitions": definitions(300, fields(4000)),
		"fields of one definition":   definitions(1, fields(10000)),
		"fields of objects":          objectV4(bytes.Clone(v4), "MetadataBlock", append(append(append([]byte{20, 0, 1, 0}, make([]byte, 16)...), binary.AppendUvarint([]byte{0x80, 0}, uint64(len(v4Fields)))...), v4Fields...)),
		"pairs of definitions":       definitions(110, append(append([]byte{0, 0, 0x30, 0x75}, bytes.Repeat([]byte{6, 0, 0}, 10000)...), 0)),
		"pairs of threads":           threads,
		"pairs of the trace":         head,
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			r, err := NewReader(bytes.NewReader(file), &Options{Warn: func(err *FormatError) { told = append(told, err) }})
			require.NoError(t, err)
			var ev Event
			for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
			}
			held := len(r.h.KeyValues)
			for _, m := range r.meta.all {
				held += countFields(m.Fields) + len(m.KeyValues)
				assert.LessOrEqual(t, countFields(m.Fields), maxFieldsEach)
			}
			for _, th := range r.threads {
				held += len(th.KeyValues)
			}
			limit := maxDescribed
			if len(r.meta.all) == 0 {
				limit = maxPairs
			}
			assert.LessOrEqual(t, held, limit)
			assert.NotEmpty(t, told)
		})
	}
}

// Pairs of threads that are removed or told again are not held.
func TestPairsOfGoneThreads(t *testing.T) {
	for _, again := range []bool{false, true} {
		file := unhex(t, knownV6)[:20+4+0x35]
		for i := range 20 {
			index := byte(i + 1)
			if again {
				index = 1
			}
			row := append([]byte{index}, bytes.Repeat([]byte{4, 0, 0}, 5000+i)...)
			file = blockV6(file, kindThread, append([]byte{byte(len(row)), byte(len(row) >> 8)}, row...))
			if !again {
				file = blockV6(file, kindRemoveThread, []byte{index, 0})
			}
		}
		r, err := NewReader(bytes.NewReader(append(file, 0, 0, 0, 0)), &Options{Warn: func(err *FormatError) { t.Error(err) }})
		require.NoError(t, err)
		var ev Event
		require.Equal(t, io.EOF, r.Read(&ev))
		assert.Equal(t, again, len(r.threads) == 1)
	}
}
