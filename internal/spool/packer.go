package spool

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"
)

// A Packer makes bytes of values whose types are plain: numbers, strings, lists, pointers and
// structs of them; what points to itself is none. It makes values of the bytes again, which have of
// a string that comes often no more than a number: those of another Packer it does not know. The
// zero value is useful.
type Packer struct {
	words   []string
	number  map[string]uint64
	layouts map[reflect.Type]*layout
}

// Bounds of strings that have a number.
const (
	maxWords   = 1 << 16
	maxWordLen = 200
)

// Append appends the bytes of what x points to.
func (p *Packer) Append(b []byte, x any) []byte {
	v := reflect.ValueOf(x)
	return p.append(b, p.layout(v.Type().Elem()), v.UnsafePointer())
}

// Unpack puts what Append made bytes of into what x points to, which is zero. Of bytes that could
// not be read (see Spool.Err) it makes something.
func (p *Packer) Unpack(b []byte, x any) {
	v := reflect.ValueOf(x)
	u := unpacking{p, b}
	u.value(p.layout(v.Type().Elem()), v.UnsafePointer())
}

// A layout is where the parts of values of a type are: to ask for each of every value takes longer
// than all else.
type layout struct {
	size  uintptr
	parts []part
}

// A part is one that is no struct and no array.
type part struct {
	at   uintptr
	kind reflect.Kind
	typ  reflect.Type
	of   *layout // what a list is of, or a pointer points to
}

func (p *Packer) layout(t reflect.Type) *layout {
	l := p.layouts[t]
	if l == nil {
		if p.layouts == nil {
			p.layouts = map[reflect.Type]*layout{}
		}
		l = &layout{size: t.Size()}
		p.layouts[t] = l // at once: it may hold a pointer to its own type
		p.add(l, t, 0)
	}
	return l
}

// add adds the parts of a value that is somewhere in those of a layout.
func (p *Packer) add(l *layout, t reflect.Type, at uintptr) {
	x := part{at: at, kind: t.Kind(), typ: t}
	switch x.kind {
	case reflect.Struct:
		for i := range t.NumField() {
			p.add(l, t.Field(i).Type, at+t.Field(i).Offset)
		}
		return
	case reflect.Array:
		for i := range t.Len() {
			p.add(l, t.Elem(), at+uintptr(i)*t.Elem().Size())
		}
		return
	case reflect.Slice, reflect.Pointer:
		x.of = p.layout(t.Elem())
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64:
	default:
		panic(fmt.Sprintf("spool: %s is not plain", t))
	}
	l.parts = append(l.parts, x)
}

func (p *Packer) append(b []byte, l *layout, x unsafe.Pointer) []byte {
	for i := range l.parts {
		part := &l.parts[i]
		at := unsafe.Add(x, part.at)
		switch part.kind {
		case reflect.Bool:
			if *(*bool)(at) {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		case reflect.Int:
			b = binary.AppendVarint(b, int64(*(*int)(at)))
		case reflect.Int32:
			b = binary.AppendVarint(b, int64(*(*int32)(at)))
		case reflect.Int64:
			b = binary.AppendVarint(b, *(*int64)(at))
		case reflect.Uint8:
			b = binary.AppendUvarint(b, uint64(*(*uint8)(at)))
		case reflect.Uint32:
			b = binary.AppendUvarint(b, uint64(*(*uint32)(at)))
		case reflect.Uint64:
			b = binary.AppendUvarint(b, *(*uint64)(at))
		case reflect.String:
			b = p.word(b, *(*string)(at))
		case reflect.Slice:
			v := reflect.NewAt(part.typ, at).Elem()
			if v.IsNil() {
				b = append(b, 0)
				continue
			}
			n := v.Len()
			b = binary.AppendUvarint(b, uint64(n)+1)
			for k := range n {
				b = p.append(b, part.of, unsafe.Add(v.UnsafePointer(), uintptr(k)*part.of.size))
			}
		case reflect.Pointer:
			if to := *(*unsafe.Pointer)(at); to == nil {
				b = append(b, 0)
			} else {
				b = p.append(append(b, 1), part.of, to)
			}
		}
	}
	return b
}

// word appends 0 and a string, or a number of one that has one: 1 and up.
func (p *Packer) word(b []byte, s string) []byte {
	n, ok := p.number[s]
	if !ok {
		if len(s) > maxWordLen || len(p.words) == maxWords {
			b = binary.AppendUvarint(append(b, 0), uint64(len(s)))
			return append(b, s...)
		}
		if p.number == nil {
			p.number = map[string]uint64{}
		}
		p.words = append(p.words, s)
		n = uint64(len(p.words))
		p.number[s] = n
	}
	return binary.AppendUvarint(b, n)
}

// An unpacking is bytes of which the first ones are read next.
type unpacking struct {
	*Packer
	b []byte
}

func (u *unpacking) value(l *layout, x unsafe.Pointer) {
	for i := range l.parts {
		part := &l.parts[i]
		at := unsafe.Add(x, part.at)
		switch part.kind {
		case reflect.Bool:
			*(*bool)(at) = u.uint() != 0
		case reflect.Int:
			*(*int)(at) = int(u.int())
		case reflect.Int32:
			*(*int32)(at) = int32(u.int())
		case reflect.Int64:
			*(*int64)(at) = u.int()
		case reflect.Uint8:
			*(*uint8)(at) = uint8(u.uint())
		case reflect.Uint32:
			*(*uint32)(at) = uint32(u.uint())
		case reflect.Uint64:
			*(*uint64)(at) = u.uint()
		case reflect.String:
			*(*string)(at) = u.word()
		case reflect.Slice:
			n := u.uint()
			if n == 0 {
				continue
			}
			n = min(n-1, uint64(len(u.b))) // each takes a byte at least
			v := reflect.MakeSlice(part.typ, int(n), int(n))
			for k := range uintptr(n) {
				u.value(part.of, unsafe.Add(v.UnsafePointer(), k*part.of.size))
			}
			reflect.NewAt(part.typ, at).Elem().Set(v)
		case reflect.Pointer:
			if u.uint() != 0 {
				v := reflect.New(part.typ.Elem())
				u.value(part.of, v.UnsafePointer())
				*(*unsafe.Pointer)(at) = v.UnsafePointer()
			}
		}
	}
}

func (u *unpacking) int() int64 {
	n, size := binary.Varint(u.b)
	u.skip(size)
	return n
}

func (u *unpacking) uint() uint64 {
	n, size := binary.Uvarint(u.b)
	u.skip(size)
	return n
}

// skip goes on behind a number of so many bytes.
func (u *unpacking) skip(size int) {
	if size <= 0 {
		u.b = nil
		return
	}
	u.b = u.b[size:]
}

func (u *unpacking) word() string {
	if n := u.uint(); n > 0 {
		if n > uint64(len(u.words)) {
			return ""
		}
		return u.words[n-1]
	}
	n := min(u.uint(), uint64(len(u.b)))
	s := string(u.b[:n])
	u.b = u.b[n:]
	return s
}
