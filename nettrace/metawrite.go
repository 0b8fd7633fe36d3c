package nettrace

import "encoding/binary"

// rawV4 returns the definition as v3 to v5 have it, behind the provider's name:
// the file's own bytes where there are such.
func (m *Metadata) rawV4() []byte {
	if m.Raw != nil && !m.row && !m.mended {
		return m.Raw
	}
	id := m.EventID
	if m.Unknown {
		id = int(uint16(m.ID))
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(id))
	b = appendStringUTF16(b, m.Name)
	b = binary.LittleEndian.AppendUint64(b, m.Keywords)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Version))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Level))
	switch {
	case !onlyTypes(m.Fields, TypeArray): // types that only v6 has
		b = binary.LittleEndian.AppendUint32(b, 0)
	case onlyTypes(m.Fields, TypeString):
		b = appendFieldsV1(b, m.Fields)
	default:
		b = binary.LittleEndian.AppendUint32(b, 0)
		fields := appendFieldsV2(nil, m.Fields)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(fields)))
		b = append(append(b, 2), fields...)
	}
	if m.Opcode != 0 && !m.noopcode {
		b = append(b, 1, 0, 0, 0, 1, byte(m.Opcode))
	}
	return b
}

// onlyTypes reports whether no field has a type code above the given one.
func onlyTypes(fields []Field, most TypeCode) bool {
	for i := range fields {
		f := &fields[i]
		if f.Type > most || !onlyTypes(f.Fields, most) || f.Elem != nil && !onlyTypes([]Field{*f.Elem}, most) {
			return false
		}
	}
	return true
}

func appendFieldsV1(b []byte, fields []Field) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(fields)))
	for i := range fields {
		f := &fields[i]
		b = binary.LittleEndian.AppendUint32(b, uint32(f.Type))
		if f.Type == TypeObject {
			b = appendFieldsV1(b, f.Fields)
		}
		b = appendStringUTF16(b, f.Name)
	}
	return b
}

func appendFieldsV2(b []byte, fields []Field) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(fields)))
	for i := range fields {
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		b = appendStringUTF16(b, fields[i].Name)
		b = appendTypeV2(b, &fields[i])
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at))
	}
	return b
}

func appendTypeV2(b []byte, f *Field) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(f.Type))
	switch f.Type {
	case TypeArray:
		b = appendTypeV2(b, f.Elem)
	case TypeObject:
		b = appendFieldsV2(b, f.Fields)
	}
	return b
}

// rawV6 returns the row of v6 behind the provider's name.
func (m *Metadata) rawV6() []byte {
	if m.Raw != nil && m.row && !m.damaged && !m.mended {
		return m.Raw
	}
	id := m.EventID
	if m.Unknown {
		id = int(m.ID)
	}
	b := binary.AppendUvarint(nil, uint64(id))
	b = appendStringV(b, m.Name)
	b = appendFieldsV6(b, m.Fields)
	var o []byte
	if m.Opcode != 0 && !m.noopcode {
		o = append(o, 1, byte(m.Opcode))
	}
	if m.Keywords != 0 {
		o = binary.LittleEndian.AppendUint64(append(o, 3), m.Keywords)
	}
	if m.Message != "" {
		o = appendStringV(append(o, 4), m.Message)
	}
	if m.Description != "" {
		o = appendStringV(append(o, 5), m.Description)
	}
	for _, kv := range m.KeyValues {
		o = appendStringV(appendStringV(append(o, 6), kv.Key), kv.Value)
	}
	if !m.ProviderID.IsZero() {
		o = append(append(o, 7), m.ProviderID[:]...)
	}
	if m.Level != 0 {
		o = append(o, 8, byte(m.Level))
	}
	if m.Version != 0 {
		o = append(o, 9, byte(m.Version))
	}
	if len(o) > 0xffff {
		o = nil
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(o)))
	return append(b, o...)
}

func appendFieldsV6(b []byte, fields []Field) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(len(fields)))
	for i := range fields {
		at := len(b)
		b = append(b, 0, 0)
		b = appendStringV(b, fields[i].Name)
		b = appendTypeV6(b, &fields[i])
		binary.LittleEndian.PutUint16(b[at:], uint16(len(b)-at-2))
	}
	return b
}

func appendTypeV6(b []byte, f *Field) []byte {
	b = append(b, byte(f.Type))
	switch f.Type {
	case TypeArray, TypeRelLoc, TypeDataLoc, TypeFixed:
		b = appendTypeV6(b, f.Elem)
		if f.Type == TypeFixed {
			b = binary.LittleEndian.AppendUint16(b, uint16(f.Count))
		}
	case TypeObject:
		b = appendFieldsV6(b, f.Fields)
	}
	return b
}
