package nettrace

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The kernel's texts of a variable length are declared as numbers that tell where they stand.
func TestLocated(t *testing.T) {
	number := func(name string) Field { return Field{Name: name, Type: TypeUint32} }
	at := func(pos, size int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(size)<<16|uint32(pos)) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, x := range []struct {
		name    string
		fields  []Field
		payload []byte
		want    []any
		rest    string
	}{
		{"from the start", []Field{{Name: "common_type", Type: TypeUint16}, number("filename"), number("flags")},
			join([]byte{7, 0}, at(10, 9), []byte{1, 0, 0, 0}, []byte("/bin/cat\x00")), []any{7, "/bin/cat", 1}, ""},
		{"two", []Field{number("a"), number("b")}, join(at(8, 3), at(11, 4), []byte("go\x00all\x00")), []any{"go", "all"}, ""},
		{"of nothing", []Field{number("a")}, join(at(4, 1), []byte{0}), []any{""}, ""},
		{"from behind the field", []Field{number("a"), number("b")}, join(at(4, 3), []byte{9, 0, 0, 0}, []byte("go\x00")), []any{"go", 9}, ""},
		{"behind a value of the recorder", []Field{{Name: "Value", Type: TypeVaruint}, number("a")}, join([]byte{0x80, 1}, at(4, 3), []byte("go\x00")), []any{128, "go"}, ""},
		{"behind fields that are not declared", []Field{number("a")}, join(at(12, 3), []byte{1, 2, 3, 4, 5, 6, 7, 0}, []byte("go\x00")), []any{"go"}, "01020304050607"},
		{"a number", []Field{number("a")}, join(at(4, 3), []byte("gone")), []any{3<<16 | 4}, "676f6e65"},
		{"beyond the end", []Field{number("a")}, join(at(4, 30), []byte("go\x00")), []any{30<<16 | 4}, "676f"},
		{"no text", []Field{number("a")}, join(at(4, 3), []byte{1, 2, 0}), []any{3<<16 | 4}, "0102"},
		{"into the fields", []Field{number("a"), number("b")}, join(at(4, 4), []byte("abc\x00"), []byte{1}), []any{4<<16 | 4, int64(binary.LittleEndian.Uint32([]byte("abc\x00")))}, "01"},
	} {
		var out bytes.Buffer
		w, err := NewWriter(&out, &Header{Version: 6, Frequency: 1e9, PointerSize: 8})
		require.NoError(t, err)
		require.NoError(t, w.Write(&Event{Time: 1, Metadata: &Metadata{Provider: "Universal.Events", Name: "x", EventID: 1, HasFieldList: true, Fields: x.fields}, Payload: x.payload}))
		require.NoError(t, w.Close())
		r, err := NewReader(&out, warnings(t))
		require.NoError(t, err)
		var ev Event
		require.NoError(t, r.Read(&ev))
		values, err := ev.AppendValues(nil)
		require.NoError(t, err, x.name)
		var got []any
		for i := range values {
			if v := &values[i]; v.Kind() == KindString {
				got = append(got, v.Text().String())
			} else {
				got = append(got, v.Uint())
			}
		}
		require.Len(t, got, len(x.want), x.name)
		for i, want := range x.want {
			assert.EqualValues(t, want, got[i], x.name)
		}
		assert.Equal(t, x.rest, hexOf(ev.Rest(values)), x.name)
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s []byte
	for _, c := range b {
		s = append(s, digits[c>>4], digits[c&15])
	}
	return string(s)
}
