package nettrace

import (
	"bytes"
	"hash/crc32"
)

// A ref is a place in one of the blocks that a refTable keeps.
type ref struct{ block, off, size uint32 }

// A refTable finds the records of stack or label blocks by id. Ids count up
// from the first one of a region, so most of it is a slice; whatever else a file
// does (gaps, redefinitions) goes to a map. Records are never moved: a number
// that find returned stays good until clear.
type refTable struct {
	records
	base  uint32 // refs before it belong to ids of an earlier region
	first uint32 // id of refs[base]
	run   uint32 // ids first to first+run-1 are refs[base:base+run]
	odd   map[uint32]uint32

	size int      // of the blocks that were kept as they are
	free []byte   // what is left of the last block, where only records are kept: see share
	seen []uint32 // then, numbers of large records by their checksums
}

const (
	// mostAlone is how many bytes of blocks are kept as they are, ten times what stands between two
	// sequence points of a runtime or recorder, where no two stacks are equal.
	mostAlone = 32 << 20
	// largeRecord is the size from which on equal records are looked for: less would take more memory
	// to know than to keep.
	largeRecord = 256
	seenRecords = 1 << 12
)

// crowded reports whether no more blocks are to be kept, but their records by share.
func (t *refTable) crowded() bool { return t.size > mostAlone }

// keep keeps a block, whose records add makes known.
func (t *refTable) keep(block []byte) {
	t.blocks = append(t.blocks, block)
	t.size += len(block)
}

// share is add for a record that is copied, or found among large ones of late: that has one number for
// all its ids. Written parts of a block never change, so copies of records may be read meanwhile.
func (t *refTable) share(id uint32, record []byte) (again bool) {
	if len(record) >= largeRecord {
		if t.seen == nil {
			t.seen = make([]uint32, seenRecords)
		}
		slot := crc32.ChecksumIEEE(record) % seenRecords
		if n := t.seen[slot]; n > 0 && bytes.Equal(t.bytes(n), record) {
			return t.put(id, t.refs[n-1], n)
		}
		t.seen[slot] = uint32(len(t.refs)) + 1
	}
	if len(t.free) < len(record) {
		t.free = make([]byte, max(len(record), 256<<10))
		t.blocks = append(t.blocks, t.free)
	}
	last := len(t.blocks) - 1
	at := len(t.blocks[last]) - len(t.free)
	t.free = t.free[copy(t.free, record):]
	return t.put(id, ref{uint32(last), uint32(at), uint32(len(record))}, 0)
}

// records are what the numbers of find stand for. A copy has those that were known when it was made.
type records struct {
	blocks [][]byte
	refs   []ref
}

// clear forgets all records; their bytes are handed to recycle. Copies that are held stay as they are.
func (t *refTable) clear(recycle func([]byte), held bool) {
	for _, b := range t.blocks {
		recycle(b)
	}
	if held {
		t.records = records{make([][]byte, 0, len(t.blocks)), make([]ref, 0, len(t.refs))}
	} else {
		clear(t.blocks)
		t.blocks, t.refs = t.blocks[:0], t.refs[:0]
	}
	t.base, t.first, t.run, t.odd = 0, 0, 0, nil
	t.size, t.free, t.seen = 0, nil, nil
}

// restart forgets the ids but keeps the records that were found by them.
func (t *refTable) restart() {
	t.base, t.first, t.run, t.odd = uint32(len(t.refs)), 0, 0, nil
}

// add makes a record of the last block known. It reports whether the id was known already.
func (t *refTable) add(id uint32, off, size int) (again bool) {
	return t.put(id, ref{uint32(len(t.blocks) - 1), uint32(off), uint32(size)}, 0)
}

// put makes a record known. It is found by the number of an equal one, 0: by its own.
func (t *refTable) put(id uint32, r ref, equal uint32) (again bool) {
	if len(t.refs) == int(t.base) {
		t.first = id
	}
	follows := len(t.refs) == int(t.base+t.run) && id == t.first+t.run
	if follows {
		t.run++
	} else {
		again = t.find(id) != 0
	}
	t.refs = append(t.refs, r)
	if follows && equal == 0 {
		return false
	}
	if equal == 0 {
		equal = uint32(len(t.refs))
	}
	if t.odd == nil {
		t.odd = map[uint32]uint32{}
	}
	t.odd[id] = equal
	return again
}

// next is the id that follows those known.
func (t *refTable) next() uint32 {
	if t.run == 0 {
		return 1
	}
	return t.first + t.run
}

// drop forgets the n records added last, which follow one another.
func (t *refTable) drop(n uint32) {
	t.run -= n
	t.refs = t.refs[:len(t.refs)-int(n)]
}

// find returns the number of a record, 0 if there is none.
func (t *refTable) find(id uint32) uint32 {
	if t.odd != nil {
		if n, ok := t.odd[id]; ok {
			return n
		}
	}
	if i := id - t.first; i < t.run {
		return t.base + i + 1
	}
	return 0
}

// bytes returns the record with a number of find.
func (t *records) bytes(n uint32) []byte {
	r := t.refs[n-1]
	return t.blocks[r.block][r.off : r.off+r.size : r.off+r.size]
}
