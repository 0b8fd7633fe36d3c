package activity

import "slices"

// A Decoder decodes the ids of one trace, which may hold those of several runtimes. Some ids can be
// read as of .NET 5 to 9 and, otherwise, as of .NET 10. They are taken for the former until an id of
// the same process proves the latter: the process that stands in the ids themselves, as that in a
// GUID which is no path is any number. What was lost stands in the id of the parent first, which comes
// with the start of the child, so the proof comes before what needs it. The version of the runtime is
// not asked: it stands at the end of a trace, if at all, and does not say which versions after
// .NET 10 have its fault. The zero value is ready; a copy goes on alone.
type Decoder struct {
	lossy []uint32 // processes whose ids are those of .NET 10, in order; never changed in place
}

// maxLossy bounds the processes of a Decoder. Those of a machine are far fewer.
const maxLossy = 1 << 12

// Decode returns the path of the next id, and false if it holds none. What the id proves holds for it
// and for all that come.
func (d *Decoder) Decode(id ID) (Path, bool) {
	p, ok := d.Path(id)
	if !ok || !p.proof || len(d.lossy) == maxLossy {
		return p, ok
	}
	q, ok := Decode(id, true)
	if !ok { // a GUID that is no path after all
		return p, true
	}
	i, _ := slices.BinarySearch(d.lossy, p.process)
	d.lossy = slices.Insert(slices.Clone(d.lossy), i, p.process)
	return q, true
}

// Path returns the path of an id as far as is known by now how to read it, and false if it holds none.
func (d *Decoder) Path(id ID) (Path, bool) { return Decode(id, d.Lossy(id.process())) }

// Text returns the path of an id as it is shown, //1/2/3, as far as is known by now, and the
// process that stands in it; the id as text and 0 where it holds none.
func (d *Decoder) Text(id ID) (process uint32, path string) {
	p, ok := d.Path(id)
	if !ok {
		return 0, id.String()
	}
	return p.process, string(p.AppendText(append(make([]byte, 0, 48), "//"...)))
}

// Lossy reports whether a process was found to write ids of .NET 10.
func (d *Decoder) Lossy(process uint32) bool {
	if len(d.lossy) == 0 {
		return false
	}
	_, is := slices.BinarySearch(d.lossy, process)
	return is
}

// Proven returns the number of processes that were found to write ids of .NET 10. It never gets less.
func (d *Decoder) Proven() int { return len(d.lossy) }

// Equal reports whether two decoders read all ids alike.
func (d *Decoder) Equal(other *Decoder) bool { return slices.Equal(d.lossy, other.lossy) }
