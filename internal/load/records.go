package load

import "github.com/tracefix/tracefix/profile"

// records are the stacks of the stack records of the file that were met lately.
type records struct {
	// Those of one region of the file, by what is left of the key: 1 + the stack. A
	// region numbers its records from 1 on.
	region uint64
	dense  []profile.StackID
	used   int // of dense, which grows with what is used and not with the largest number
	other  map[uint64]profile.StackID
}

// maxRecords bounds what is kept of records that are long gone.
const maxRecords = 1 << 15

func (r *records) get(k uint64) (profile.StackID, bool) {
	if i := uint64(uint32(k)); k>>32 == r.region && i < uint64(len(r.dense)) {
		if id := r.dense[i]; id != 0 {
			return id - 1, true
		}
	}
	if len(r.other) == 0 {
		return 0, false
	}
	id, ok := r.other[k]
	return id, ok
}

func (r *records) add(k uint64, id profile.StackID) {
	if i := uint64(uint32(k)); i < uint64(min(maxRecords, 256+4*r.used)) {
		if region := k >> 32; region != r.region {
			r.region, r.used = region, 0
			clear(r.dense)
		}
		r.used++
		if i >= uint64(len(r.dense)) {
			r.dense = append(r.dense, make([]profile.StackID, 1+int(i)-len(r.dense))...)
		}
		r.dense[i] = id + 1
		return
	}
	if len(r.other) >= maxRecords {
		clear(r.other)
	}
	r.other[k] = id
}

func (r *records) clear() {
	r.used = 0
	clear(r.dense)
	clear(r.other)
}
