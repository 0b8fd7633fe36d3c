package events

import "fmt"

// A floor is the least that survived some collections in a row.
type floor struct {
	ns    int64 // when that one began
	bytes uint64
}

// floors are those of all collections of generation 2, in order. Of more than maxFloors several in a
// row become one, which the least of them stands for: no quarter is lower for it.
type floors struct {
	list  []floor
	each  int // how many collections an entry stands for, but for the last one
	last  int // how many that one stands for
	count int
}

const maxFloors = 1024

func (f *floors) add(ns int64, bytes uint64) {
	f.count++
	if f.each == 0 {
		f.each = 1
	}
	if f.last > 0 && f.last < f.each {
		f.last++
		if end := &f.list[len(f.list)-1]; bytes < end.bytes {
			*end = floor{ns, bytes}
		}
		return
	}
	if len(f.list) == maxFloors {
		for i := range maxFloors / 2 {
			a, b := f.list[2*i], f.list[2*i+1]
			if b.bytes < a.bytes {
				a = b
			}
			f.list[i] = a
		}
		f.list = f.list[:maxFloors/2]
		f.each *= 2
	}
	f.list, f.last = append(f.list, floor{ns, bytes}), 1
}

// quarters are the floors of the quarters of all collections; nil if there are too few to tell a
// trend from chance.
func (f *floors) quarters() *quarters {
	n := len(f.list)
	if f.count < 8 {
		return nil
	}
	var q quarters
	for i := range q {
		part := f.list[i*n/4 : (i+1)*n/4]
		q[i] = part[0]
		for _, x := range part {
			if x.bytes < q[i].bytes {
				q[i] = x
			}
		}
	}
	return &q
}

type quarters [4]floor

// grow reports whether what survives grows all through: from each quarter to the next one, by a tenth
// and a megabyte in all, and at the end about as much as before. A cache that fills and then is full
// does not, nor does a heap whose least is as low at the end as it once was: a background collection
// keeps what died while it ran, so that single ones tell too much.
func (q *quarters) grow() bool {
	all := float64(q[3].bytes) - float64(q[0].bytes)
	for i := range 3 {
		if step := float64(q[i+1].bytes) - float64(q[i].bytes); step < 0.15*all {
			return false
		}
	}
	return all >= 1e6 && all >= 0.1*float64(q[0].bytes) && q[3].ns > q[0].ns // of a damaged file they may be at one time
}

// liveGrows says by how much, and how fast.
func liveGrows(q *quarters, collections int) string {
	took := float64(q[3].ns-q[0].ns) / 60e9 // minutes
	rate, unit := float64(q[3].bytes-q[0].bytes)/took, "a minute"
	if rate < 1e6 {
		rate, unit = rate*60, "an hour"
	}
	return fmt.Sprintf("Grows: %s survived generation 2 at first, %s at last, with each quarter of the %s collections more: by %s %s. "+
		"If that goes on, something holds on to objects; dotnet-gcdump tells what.",
		size(float64(q[0].bytes)), size(float64(q[3].bytes)), thousands(collections), size(rate), unit)
}
