package nettrace

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
}

// restart forgets the ids but keeps the records that were found by them.
func (t *refTable) restart() {
	t.base, t.first, t.run, t.odd = uint32(len(t.refs)), 0, 0, nil
}

// add makes a record of the last block known. It reports whether the id was known already.
func (t *refTable) add(id uint32, off, size int) (again bool) {
	r := ref{uint32(len(t.blocks) - 1), uint32(off), uint32(size)}
	if len(t.refs) == int(t.base) {
		t.first = id
	}
	if len(t.refs) == int(t.base+t.run) && id == t.first+t.run {
		t.refs = append(t.refs, r)
		t.run++
		return false
	}
	again = t.find(id) != 0
	t.refs = append(t.refs, r)
	if t.odd == nil {
		t.odd = map[uint32]uint32{}
	}
	t.odd[id] = uint32(len(t.refs))
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
