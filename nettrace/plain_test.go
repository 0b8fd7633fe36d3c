package nettrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainFile is a known file whose block of events has n others instead, with uncompressed headers, and
// where each of them begins. Their payloads are 4 to 11 bytes long; pad is what follows each in v4.
func plainFile(t testing.TB, version, n, pad int) (file []byte, at []int) {
	t.Helper()
	old := unhex(t, map[int]string{4: knownV4, 6: knownV6}[version])
	block := append([]byte{20, 0, 0, 0}, make([]byte, 16)...)
	binary.LittleEndian.PutUint64(block[4:], 2000)
	binary.LittleEndian.PutUint64(block[12:], uint64(2000+n-1))
	for i := range n {
		at = append(at, len(block))
		payload := []byte{byte(i), 0, 0, 0, 9, 9, 9, 9, 9, 9, 9}[:4+i%8]
		if version == 6 {
			payload = append(binary.AppendUvarint(nil, uint64(i)), payload...)
		}
		e := le32(le32(nil, 1), uint32(i+1)) // type 1, number
		thread := uint64(77)
		if version == 6 {
			thread = 1
		}
		e = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(e, thread), thread)
		e = le32(le32(e, 3), uint32(1)) // processor, stack
		e = binary.LittleEndian.AppendUint64(e, uint64(2000+i))
		if version == 6 {
			e = le32(e, 1) // labels
		} else {
			e = append(e, make([]byte, 32)...)
		}
		e = append(le32(e, uint32(len(payload))), payload...)
		if version == 4 {
			e = append(e, zeros[:min(pad, -len(e)&3)]...)
		}
		block = append(append(block, le32(nil, uint32(len(e)))...), e...)
	}
	if version == 6 {
		spans, kinds := blocksOf(t, old)
		for i, span := range spans {
			if kinds[i] == kindEvent {
				file = blockV6(append(file, old[:span[0]]...), kindEvent, block)
				point := le32(le32(le64(nil, uint64(2000+n)), 0), uint32(1))
				file = blockV6(file, kindSequencePoint, append(point, 1, byte(n)))
				return append(file, 0, 0, 0, 0), shift(at, span[0]+4)
			}
		}
	}
	i := bytes.Index(old, []byte("EventBlock\x06")) + 11
	file = le32(append(file, old[:i]...), uint32(len(block)))
	for len(file)%4 != 0 {
		file = append(file, 0)
	}
	start := len(file)
	file = append(append(file, block...), tagEnd)
	i = bytes.Index(old, []byte("SPBlock\x06"))
	file = append(file, old[i-15:i+8]...)
	file = le32(file, 24)
	for len(file)%4 != 0 {
		file = append(file, 0)
	}
	file = binary.LittleEndian.AppendUint64(file, uint64(2000+n))
	file = le32(binary.LittleEndian.AppendUint64(le32(file, 1), 77), uint32(n))
	return append(file, tagEnd, tagNull), shift(at, start)
}

func shift(at []int, by int) []int {
	for i := range at {
		at[i] += by
	}
	return at
}

// Behind a damaged event in a block with uncompressed headers the others are read, whatever of it
// was hit, and that it is lost is told.
func TestPlainHeadersDamaged(t *testing.T) {
	const n = 40
	for _, c := range []struct{ version, pad int }{{4, 0}, {4, 3}, {6, 0}} {
		data, at := plainFile(t, c.version, n, c.pad)
		all, r, err := read(t, data)
		require.Equal(t, io.EOF, err, "%v", err)
		require.Zero(t, r.Stats().Defects)
		require.Len(t, all, n)
		size := map[int]int{4: 76, 6: 48}[c.version] // where the size of the payload is
		for _, i := range []int{0, 5, 20, n - 2, n - 1} {
			for bit := range 32 {
				name := fmt.Sprintf("version %d, padding %d, event %d, bit %d", c.version, c.pad, i, bit)
				hit := bytes.Clone(data)
				flip(hit, (at[i]+size)*8+bit)
				events, r, err := read(t, hit)
				if bit < 2 && c.pad > 0 && err == io.EOF { // as much padding may be meant
					continue
				}
				require.ErrorIs(t, err, ErrDamaged, name)
				require.Len(t, events, n-1, name)
				require.Equal(t, all[:i], events[:i], name)
				require.Equal(t, n-1-i, len(events[i:]), name)
				assert.Equal(t, nextAt(data, at, i)-int64(at[i]), r.Stats().LostBytes, name)
				assert.Zero(t, r.Stats().Lost, name)

				// The other size alone costs nothing.
				hit = bytes.Clone(data)
				flip(hit, at[i]*8+bit)
				events, _, _ = read(t, hit)
				require.Equal(t, n, len(events), name)
			}
			// A whole event of zeros, and the end of one and the beginning of the next.
			next := nextAt(data, at, i)
			hit := bytes.Clone(data)
			clear(hit[at[i]:next])
			events, r, err := read(t, hit)
			require.ErrorIs(t, err, ErrDamaged)
			require.Len(t, events, n-1)
			assert.Equal(t, next-int64(at[i]), r.Stats().LostBytes)
		}
	}
}

// nextAt is where the event behind the one at at[i] begins, or the block ends.
func nextAt(data []byte, at []int, i int) int64 {
	return int64(at[i]) + 4 + int64(binary.LittleEndian.Uint32(data[at[i]:]))
}

// A writer may have another size in the first field of each event; nothing is lost of its files, nor of
// events whose type or stack is missing.
func TestPlainHeadersOdd(t *testing.T) {
	const n = 40
	for _, version := range []int{4, 6} {
		data, at := plainFile(t, version, n, 0)
		other, unknown := bytes.Clone(data), bytes.Clone(data)
		for i, p := range at {
			clear(other[p : p+4])
			if i%4 > 0 {
				unknown[p+4] = 99 // type
			}
		}
		for _, file := range [][]byte{other, unknown} {
			events, r, _ := read(t, file)
			assert.Len(t, events, n)
			assert.Zero(t, r.Stats().LostBytes)
		}
		// Of the first nothing is certain behind damage.
		flip(other, (at[10]+map[int]int{4: 76, 6: 48}[version])*8+20)
		events, r, err := read(t, other)
		assert.ErrorIs(t, err, ErrDamaged)
		assert.Len(t, events, 10)
		assert.Equal(t, nextAt(data, at, n-1)-int64(at[10]), r.Stats().LostBytes)
	}
}

// plainMetadata is a known file of v4 whose block of metadata has n definitions instead, with
// uncompressed headers, and where each of them begins. Their payloads have different lengths; pad
// is what follows each.
func plainMetadata(t testing.TB, n, pad int) (file []byte, at []int) {
	t.Helper()
	old := unhex(t, knownV4)
	spans, kinds := blocksOf(t, old)
	require.Equal(t, kindMetadata, kinds[0])
	block := append([]byte{20, 0, 0, 0}, make([]byte, 16)...)
	for i := range n {
		at = append(at, len(block))
		m := &Metadata{Provider: "Shop", EventID: i + 1, Name: strings.Repeat("e", 1+i%5) + "vent", Version: 1, Level: 4,
			Fields: []Field{{Name: "Value", Type: TypeInt32}}, HasFieldList: true}
		payload := appendStringUTF16(le32(nil, uint32(i+1)), m.Provider)
		payload = append(append(payload, m.rawV4()...), make([]byte, i%2)...)
		e := append(make([]byte, 72), le32(nil, uint32(len(payload)))...)
		e = append(e, payload...)
		e = append(e, zeros[:min(pad, -len(e)&3)]...)
		block = append(append(block, le32(nil, uint32(len(e)))...), e...)
	}
	file = objectV4(bytes.Clone(old[:spans[0][0]]), "MetadataBlock", block)
	start := len(file) - 1 - len(block)
	for i, span := range spans[1:] {
		o, _ := parseObject(old[span[0]:])
		body := (span[0] + o.size + 4 + 3) &^ 3
		file = objectV4(file, kinds[1+i].String(), old[body:span[1]-1])
	}
	return append(file, tagNull), shift(at, start)
}

// Behind a damaged definition with an uncompressed header the others are read, and that one is lost
// is told once, with its offset.
func TestPlainMetadataDamaged(t *testing.T) {
	const n = 30
	defined := func(data []byte) (names []string, told []int64, err error) {
		r, err := NewReader(bytes.NewReader(data), &Options{Warn: func(e *FormatError) { told = append(told, e.Offset) }})
		require.NoError(t, err)
		_, err = describeAll(t, r)
		for _, m := range r.Metadata() {
			if !m.Unknown {
				names = append(names, fmt.Sprint(m.ID, m.Provider, m.EventID, m.Name, m.Fields, m.Raw))
			}
		}
		return names, told, err
	}
	for _, pad := range []int{0, 3} {
		data, at := plainMetadata(t, n, pad)
		all, told, err := defined(data)
		require.Equal(t, io.EOF, err, "%v", told)
		require.Len(t, all, n)
		for _, i := range []int{2, 5, 20, n - 2, n - 1} { // the known events use the first one
			for bit := range 32 {
				name := fmt.Sprintf("padding %d, definition %d, bit %d", pad, i, bit)
				hit := bytes.Clone(data)
				flip(hit, (at[i]+76)*8+bit)
				got, told, err := defined(hit)
				if bit < 2 && err == io.EOF { // as much padding may be meant: definitions end with zeros
					continue
				}
				require.ErrorIs(t, err, ErrDamaged, name)
				require.Equal(t, append(slices.Clone(all[:i]), all[i+1:]...), got, name)
				require.Equal(t, []int64{int64(at[i])}, told, name)

				// The other size alone costs nothing.
				hit = bytes.Clone(data)
				flip(hit, at[i]*8+bit)
				got, _, _ = defined(hit)
				require.Equal(t, all, got, name)
			}
			// A whole definition of zeros.
			hit := bytes.Clone(data)
			clear(hit[at[i]:nextAt(data, at, i)])
			got, told, err := defined(hit)
			require.ErrorIs(t, err, ErrDamaged)
			require.Equal(t, append(slices.Clone(all[:i]), all[i+1:]...), got)
			require.Equal(t, []int64{int64(at[i])}, told)
		}
		// One that is none, whose sizes are right.
		hit := bytes.Clone(data)
		clear(hit[at[7]+80 : at[7]+90])
		got, told, err := defined(hit)
		require.ErrorIs(t, err, ErrDamaged)
		require.Equal(t, append(slices.Clone(all[:7]), all[8:]...), got)
		require.Equal(t, []int64{int64(at[7])}, told)

		// A writer may have something else in the first field of each.
		for i := range at {
			clear(data[at[i] : at[i]+4])
		}
		if pad == 0 {
			got, told, err = defined(data)
			require.Equal(t, io.EOF, err, "%v", told)
			require.Equal(t, all, got)
		}
	}
}
