package tracetest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
)

// A PDBPoint is a sequence point of a method: an offset of IL and a line; line 0 is hidden.
type PDBPoint struct {
	IL       uint32
	Line     int
	Document int // number in the documents of the PDB
}

// PDB makes a portable PDB: the points of methods by their row, in the order of IL. The names of
// documents are split at their slashes, as compilers do.
func PDB(id [16]byte, documents []string, methods map[uint32][]PDBPoint) []byte {
	blobs := []byte{0}
	blob := func(b []byte) uint32 {
		at := len(blobs)
		blobs = append(appendCompressed(blobs, uint32(len(b))), b...)
		return uint32(at)
	}
	var names, points []uint32
	for _, d := range documents {
		name := []byte{'/'}
		for _, part := range bytes.Split([]byte(d), []byte{'/'}) {
			name = appendCompressed(name, blob(part))
		}
		names = append(names, blob(name))
	}
	rows := uint32(0)
	for row := range methods {
		rows = max(rows, row)
	}
	for row := uint32(1); row <= rows; row++ {
		at := uint32(0)
		if len(methods[row]) > 0 {
			at = blob(appendPoints(methods[row]))
		}
		points = append(points, at)
	}
	heaps, index := uint32(0), func(b []byte, at uint32) []byte { return binary.LittleEndian.AppendUint16(b, uint16(at)) }
	if len(blobs) > 1<<16-1 {
		heaps, index = 4<<16, binary.LittleEndian.AppendUint32
	}
	var tables []byte
	// The documents are table 0x30, the methods 0x31.
	for _, v := range []uint32{0, 2 | heaps, 0, 1<<16 | 1<<17, 0, 0, uint32(len(documents)), rows} {
		tables = binary.LittleEndian.AppendUint32(tables, v)
	}
	for _, at := range names {
		tables = append(index(append(index(tables, at), 0, 0), 0), 0, 0)
	}
	for i, at := range points {
		doc := 0
		if list := methods[uint32(i+1)]; len(list) > 0 {
			doc = list[0].Document + 1
		}
		tables = index(binary.LittleEndian.AppendUint16(tables, uint16(doc)), at)
	}
	return appendStreams(id, tables, blobs)
}

// appendStreams lays out a metadata root with three streams.
func appendStreams(id [16]byte, tables, blobs []byte) []byte {
	var out bytes.Buffer
	pdb := append(append(bytes.Clone(id[:]), 1, 2, 3, 4), make([]byte, 12)...)
	streams := []struct {
		name string
		b    []byte
	}{{"#Pdb\x00\x00\x00\x00", pdb}, {"#~\x00\x00", tables}, {"#Blob\x00\x00\x00", blobs}}
	version := "PDB v1.0\x00\x00\x00\x00"
	at := 16 + len(version) + 4
	for _, s := range streams {
		at += 8 + len(s.name)
	}
	out.WriteString("BSJB")
	_ = binary.Write(&out, binary.LittleEndian, []uint16{1, 1, 0, 0, uint16(len(version)), 0})
	out.WriteString(version)
	_ = binary.Write(&out, binary.LittleEndian, []uint16{0, uint16(len(streams))})
	for _, s := range streams {
		_ = binary.Write(&out, binary.LittleEndian, []uint32{uint32(at), uint32(len(s.b))})
		out.WriteString(s.name)
		at += len(s.b)
	}
	for _, s := range streams {
		out.Write(s.b)
	}
	return out.Bytes()
}

// appendPoints is the blob of a method's sequence points; each has the width of one column.
func appendPoints(points []PDBPoint) []byte {
	b := []byte{0} // no signature of locals
	line, seen, doc, il := 0, false, points[0].Document, uint32(0)
	for _, p := range points {
		if p.Document != doc {
			doc = p.Document
			b = appendCompressed(append(b, 0), uint32(doc+1))
		}
		b = appendCompressed(b, p.IL-il)
		il = p.IL
		if p.Line == 0 {
			b = append(b, 0, 0)
			continue
		}
		b = append(b, 0, 1)
		if !seen {
			b = append(appendCompressed(b, uint32(p.Line)), 5)
		} else {
			b = append(appendSigned(b, p.Line-line), 0)
		}
		line, seen = p.Line, true
	}
	return b
}

func appendCompressed(b []byte, v uint32) []byte {
	switch {
	case v < 0x80:
		return append(b, byte(v))
	case v < 0x4000:
		return binary.BigEndian.AppendUint16(b, 0x8000|uint16(v))
	}
	return binary.BigEndian.AppendUint32(b, 0xc0000000|v)
}

// appendSigned moves the sign of a number to its lowest bit.
func appendSigned(b []byte, v int) []byte {
	sign, mask := uint32(0), uint32(1<<6-1)
	switch {
	case v >= -1<<6 && v < 1<<6:
	case v >= -1<<13 && v < 1<<13:
		mask = 1<<13 - 1
	default:
		mask = 1<<28 - 1
	}
	if v < 0 {
		sign = 1
	}
	n := (uint32(v)&mask)<<1 | sign
	switch mask {
	case 1<<6 - 1:
		return append(b, byte(n))
	case 1<<13 - 1:
		return binary.BigEndian.AppendUint16(b, 0x8000|uint16(n))
	}
	return binary.BigEndian.AppendUint32(b, 0xc0000000|n)
}

// DLL makes a PE file whose debug directory holds a PDB.
func DLL(pdb []byte) []byte {
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestCompression)
	_, _ = w.Write(pdb)
	_ = w.Close()
	const header, optional, base = 0x200, 0xe0, 0x2000
	entry := make([]byte, 28)
	le := binary.LittleEndian
	le.PutUint32(entry[12:], 17)
	le.PutUint32(entry[16:], uint32(packed.Len()+8))
	le.PutUint32(entry[20:], base+28)
	le.PutUint32(entry[24:], header+28)
	section := append(entry, "MPDB"...)
	section = le.AppendUint32(section, uint32(len(pdb)))
	section = append(section, packed.Bytes()...)

	b := make([]byte, header)
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x40)
	copy(b[0x40:], "PE\x00\x00")
	le.PutUint16(b[0x44:], 0x14c) // i386, as what the compiler calls any
	le.PutUint16(b[0x46:], 1)     // sections
	le.PutUint16(b[0x54:], optional)
	opt := b[0x58:]
	le.PutUint16(opt, 0x10b)
	le.PutUint32(opt[92:], 16) // directories
	le.PutUint32(opt[96+6*8:], base)
	le.PutUint32(opt[96+6*8+4:], 28)
	s := opt[optional:]
	copy(s, ".text")
	le.PutUint32(s[8:], uint32(len(section)))
	le.PutUint32(s[12:], base)
	le.PutUint32(s[16:], uint32(len(section)))
	le.PutUint32(s[20:], header)
	return append(b, section...)
}
