package spool

import (
	"encoding/binary"
	"fmt"
	"reflect"
)

// A Packer makes bytes of values whose types are plain: numbers, strings, lists, pointers and structs of them, all fields
// exported; what points to itself is none. It makes values of the bytes again, which it keeps of strings that come often no more
// than a number: those of others it does not know. The zero value is useful.
type Packer struct {
	words  []string
	number map[string]uint64
}

// Bounds of strings that have a number.
const (
	maxWords   = 1 << 16
	maxWordLen = 200
)

// Append appends the bytes of what x points to.
func (p *Packer) Append(b []byte, x any) []byte { return p.append(b, reflect.ValueOf(x).Elem()) }

// Unpack puts what Append made bytes of into what x points to, which is zero. Of bytes that could not be read (see Spool.Err)
// it makes something.
func (p *Packer) Unpack(b []byte, x any) {
	u := unpacking{p, b}
	u.value(reflect.ValueOf(x).Elem())
}

func (p *Packer) append(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.String:
		return p.word(b, v.String())
	case reflect.Array:
		for i := range v.Len() {
			b = p.append(b, v.Index(i))
		}
		return b
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 0)
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		for i := range v.Len() {
			b = p.append(b, v.Index(i))
		}
		return b
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return p.append(append(b, 1), v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			b = p.append(b, v.Field(i))
		}
		return b
	}
	panic(fmt.Sprintf("spool: %s is not plain", v.Type()))
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

func (u *unpacking) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(u.uint() != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, size := binary.Varint(u.b)
		u.skip(size)
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(u.uint())
	case reflect.String:
		v.SetString(u.word())
	case reflect.Array:
		for i := range v.Len() {
			u.value(v.Index(i))
		}
	case reflect.Slice:
		n := u.uint()
		if n == 0 {
			return
		}
		n = min(n-1, uint64(len(u.b))) // each takes a byte at least
		v.Set(reflect.MakeSlice(v.Type(), int(n), int(n)))
		for i := range int(n) {
			u.value(v.Index(i))
		}
	case reflect.Pointer:
		if u.uint() != 0 {
			v.Set(reflect.New(v.Type().Elem()))
			u.value(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			u.value(v.Field(i))
		}
	}
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
