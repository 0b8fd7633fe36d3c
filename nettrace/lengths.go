package nettrace

import "slices"

// lengths are the fields of a type as far as it takes to know whether a payload holds them all,
// which is asked of every event of a file: a number of bytes, or aString. Of types that have
// other fields without a fixed size there are none.
type lengths struct {
	known   bool
	pointer int // for this size
	steps   []int
}

const aString = -1 // of UTF-16, up to its zero

// of makes l the lengths of a type.
func (l *lengths) of(m *Metadata, pointer int) {
	*l = lengths{known: true, pointer: pointer}
	if m.layout == nil || m.layout.lengthUTF8 || m.Role == RoleSample || m.Role == RoleCPU || m.Role == RoleContextSwitch || m.Role == RolePageFault {
		return
	}
	steps := []int{0}
	for i := range m.layout.Fields {
		f := &m.layout.Fields[i]
		n := f.fixedSize(pointer)
		switch {
		case f.Type == TypeString:
			steps = append(steps, aString, 0)
		case n <= 0 || f.Type == TypeObject || f.Type == TypeFixed:
			return
		default:
			steps[len(steps)-1] += n
		}
	}
	l.steps = slices.Clip(steps)
}

// hold reports whether a payload has all fields of type m, if that can be said quickly.
func (l *lengths) hold(m *Metadata, pointer int, payload []byte) bool {
	if !l.known || l.pointer != pointer {
		l.of(m, pointer)
	}
	c := Cursor{b: payload}
	for _, n := range l.steps {
		if n == aString {
			c.UTF16()
		} else {
			c.Skip(n)
		}
	}
	return l.steps != nil && c.err == nil
}
