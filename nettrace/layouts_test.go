package nettrace

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBuiltInLayoutsStandTogether: every line of layouts.txt is found, and can be parsed.
func TestBuiltInLayoutsStandTogether(t *testing.T) {
	lines := 0
	for line := range strings.Lines(layoutsText) {
		if line[0] >= '0' && line[0] <= '9' {
			lines++
		}
	}
	found := 0
	for _, e := range builtInEvents() {
		found += len(e.all())
	}
	assert.Equal(t, lines, found, "the lines of an event must stand together")
}

// A type code that is not known yet ends what can be decoded of a payload. It is no damage, and
// what stands behind the fields in the definition is read all the same.
func TestUnknownType(t *testing.T) {
	field := func(name string, typ ...byte) []byte {
		return append([]byte{byte(2 + len(name) - 1 + len(typ)), 0, byte(len(name))}, append([]byte(name), typ...)...)
	}
	list := func(fields ...[]byte) []byte {
		return append([]byte{byte(len(fields)), 0}, bytes.Join(fields, nil)...)
	}
	number, unknown := byte(TypeInt32), byte(99)
	for name, fields := range map[string][]byte{
		"a field":              list(field("a", number), field("b", unknown, 1, 2, 3), field("c", number), field("d", number)),
		"an element":           list(field("a", number), field("b", byte(TypeArray), unknown), field("c", number)),
		"a field of an object": list(field("a", number), field("b", append([]byte{byte(TypeObject)}, list(field("x", number), field("y", unknown), field("z", number))...)...), field("c", number)),
	} {
		row := append([]byte{1, 1, 'P', 7, 1, 'E'}, fields...)
		row = append(row, 4, 0, 1, 9, 8, 5) // opcode, level
		m, err := parseRow(row, 0)
		require.NoError(t, err, name)
		m.complete()
		assert.Equal(t, []int{9, 5}, []int{m.Opcode, m.Level}, name)
		assert.False(t, m.damaged, name)
		ev := Event{Metadata: m, Payload: []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}}
		values, err := ev.AppendValues(nil)
		require.NoError(t, err, name)
		require.Len(t, values, 1, name)
		assert.EqualValues(t, 1, values[0].Int(), name)
	}
}

// What a field of an object points to stands behind the object.
func TestLocationInObject(t *testing.T) {
	text := Field{Type: TypeUTF8}
	inner := Field{Name: "o", Type: TypeObject, Fields: []Field{{Name: "n", Type: TypeInt32}, {Name: "d", Type: TypeDataLoc, Elem: &text}, {Name: "r", Type: TypeRelLoc, Elem: &text}}}
	l := &Layout{Fields: []Field{inner, {Name: "last", Type: TypeInt32}}}
	values, err := l.AppendValues(nil, []byte("\x05\x00\x00\x00"+"\x10\x00\x03\x00"+"\x07\x00\x02\x00"+"\x06\x00\x00\x00"+"abcde"), 8)
	require.NoError(t, err)
	assert.Equal(t, "{n:5 d:abc r:de}", values[0].String())
	assert.EqualValues(t, 6, values[1].Int())
}

// Whether a short payload is one of a type costs what it holds, and not all fields of the type.
func TestShortPayloadOfManyFields(t *testing.T) {
	l := &Layout{Fields: make([]Field, maxFieldsEach)}
	for i := range l.Fields {
		l.Fields[i].Type = TypeInt32
	}
	ev := Event{Metadata: &Metadata{layout: l}, Payload: make([]byte, 10)}
	assert.False(t, ev.fits())
	assert.Len(t, ev.values, 2)
	values, err := ev.AppendValues(nil)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Len(t, values, maxFieldsEach, "who asks for the values gets all")
}

// TestFormsAreFew holds that a definition of many fields, each of which every form holds again, has few forms.
func TestFormsAreFew(t *testing.T) {
	for n, most := range map[int]int{4: 1 << 4, mostFields: 1 << mostEnums, maxFieldsEach: 2} {
		fields := make([]Field, n)
		for i := range fields {
			fields[i] = Field{Name: "f", Type: TypeInt32}
			if i < mostEnums {
				fields[i].Type = TypeUint8
			}
		}
		assert.Len(t, writtenForms(fields, true), most, n)
	}
}
