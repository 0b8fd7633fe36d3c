package nettrace

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed layouts.txt
var layoutsText string

type layoutKey struct {
	provider string
	event    int
}

// A builtInEvent is an event of layouts.txt: its lines, which are parsed when a trace has it.
type builtInEvent struct {
	lines   string
	parse   sync.Once
	layouts []*Layout // by version
}

// builtInEvents are the events of layouts.txt, of which the lines of one stand together.
var builtInEvents = sync.OnceValue(func() map[layoutKey]*builtInEvent {
	table := make(map[layoutKey]*builtInEvent, 300)
	var key layoutKey
	var event *builtInEvent
	from, end := 0, 0 // of the event in the text
	for line := range strings.Lines(layoutsText) {
		end += len(line)
		if line == "\n" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			key, event = layoutKey{provider: strings.Trim(line, "[]\n")}, nil
			continue
		}
		id, _, _ := strings.Cut(line, " ")
		if n := number(id); event == nil || n != key.event {
			key.event, event, from = n, &builtInEvent{}, end-len(line)
			table[key] = event
		}
		event.lines = layoutsText[from:end]
	}
	return table
})

// all returns the layouts of an event.
func (e *builtInEvent) all() []*Layout {
	if e == nil {
		return nil
	}
	e.parse.Do(func() {
		for line := range strings.Lines(e.lines) {
			f := strings.Fields(line)
			version, opcode := number(f[1]), number(f[3])
			l := &Layout{BuiltIn: true, name: f[2], opcode: opcode, version: version}
			for _, s := range f[4:] {
				l.Fields = append(l.Fields, parseField(s, l.Fields))
			}
			e.layouts = append(e.layouts, l)
		}
	})
	return e.layouts
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("nettrace: internal error: layouts.txt: " + err.Error())
	}
	return n
}

var typeNames = map[string]TypeCode{
	"u8": TypeUint8, "u16": TypeUint16, "u32": TypeUint32, "u64": TypeUint64, "i32": TypeInt32, "i64": TypeInt64,
	"x32": TypeHex32, "x64": TypeHex64, "ptr": TypePointer, "f64": TypeFloat64, "b32": TypeBool32, "enum": TypeEnum32,
	"str": TypeString, "str8": TypeString8, "str16": TypeString16, "guid": TypeGUID, "var": TypeVaruint,
}

// parseField reads name:type or name:{fields} with [count] behind; before are
// the fields of the same struct so far, among which a count is found.
func parseField(s string, before []Field) Field {
	name, typ, _ := strings.Cut(s, ":")
	count := ""
	if typ[len(typ)-1] == ']' {
		open := strings.LastIndexByte(typ, '[')
		typ, count = typ[:open], typ[open+1:len(typ)-1]
	}
	f := Field{Name: name}
	if typ[0] == '{' {
		f.Type = TypeObject
		for _, part := range splitFields(typ[1 : len(typ)-1]) {
			f.Fields = append(f.Fields, parseField(part, f.Fields))
		}
	} else if f.Type = typeNames[typ]; f.Type == 0 {
		panic("nettrace: internal error: layouts.txt: type " + typ)
	}
	if count == "" {
		return f
	}
	elem := f
	elem.Name = ""
	if n, err := strconv.Atoi(count); err == nil {
		return Field{Name: name, Type: TypeFixed, Elem: &elem, Count: n}
	}
	at := slices.IndexFunc(before, func(f Field) bool { return f.Name == count })
	if at < 0 {
		panic("nettrace: internal error: layouts.txt: count " + count)
	}
	return Field{Name: name, Type: TypeCounted, Elem: &elem, Count: at}
}

// splitFields splits at the commas outside of braces.
func splitFields(s string) (parts []string) {
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}

// diagnosticLayout is that of the DiagnosticSource events that .NET before 5
// could not describe.
var diagnosticLayout = &Layout{BuiltIn: true, Fields: []Field{
	{Name: "SourceName", Type: TypeString},
	{Name: "EventName", Type: TypeString},
	keysAndValues,
}}

// scopeLayout is that of the log's ActivityStart in the same case.
var scopeLayout = &Layout{BuiltIn: true, Fields: []Field{
	{Name: "ID", Type: TypeInt32},
	{Name: "FactoryID", Type: TypeInt32},
	{Name: "LoggerName", Type: TypeString},
	keysAndValues,
}}

var keysAndValues = Field{Name: "Arguments", Type: TypeArray, Elem: &Field{Type: TypeObject, Fields: []Field{
	{Name: "Key", Type: TypeString}, {Name: "Value", Type: TypeString},
}}}

// findLayout finds the layout of a version of an event.
func findLayout(m *Metadata, version int) *Layout {
	if m.Provider == providerSystem {
		// The recorder declares strings as single bytes, nettrace.md section 5.4.
		if l := builtIn(m.Provider, m.EventID, version); l != nil {
			return l
		}
	}
	if len(m.Fields) > 0 {
		l := &Layout{Fields: m.Fields}
		l.lengthUTF8 = slices.ContainsFunc(l.Fields, func(f Field) bool { return f.Type == TypeUTF8 })
		l.located = m.row && slices.ContainsFunc(l.Fields, func(f Field) bool { return f.Type == TypeUint32 })
		if !l.lengthUTF8 {
			l.forms = writtenForms(l.Fields, !m.row)
		}
		if m.Provider == providerLogging {
			if l.forms == nil {
				l.forms = [][]Field{l.Fields}
			}
			l.forms = append(l.forms, withoutEventName(l.Fields))
		}
		return l
	}
	switch {
	case m.Unknown:
		return nil
	case m.Provider == providerDiagnostic:
		switch m.Name {
		case "Event", "Activity1Start", "Activity1Stop", "Activity2Start", "Activity2Stop", "RecursiveActivity1Start", "RecursiveActivity1Stop":
			return diagnosticLayout
		}
	case m.Provider == providerLogging && m.Name == "ActivityStart":
		return scopeLayout
	}
	return builtIn(m.Provider, m.EventID, version)
}

// selfDescribed are the types that a self-describing EventSource writes otherwise than its metadata
// says: booleans of one byte, and decimals as doubles (dotnet/runtime#119737).
var selfDescribed = map[TypeCode]TypeCode{TypeBool32: TypeBool8, TypeDecimal: TypeFloat64}

// writtenForms returns the ways in which fields may have been written, the likeliest
// first; nil if there is one only. What Write<T> writes is one object without a name.
// Wider integers are not looked for where fields may not reach to the end of the payload
// (v6, nettrace.md section 5.4).
func writtenForms(fields []Field, wider bool) [][]Field {
	own, selfDiffers := withTypes(fields, selfDescribed)
	if len(fields) == 1 && fields[0].Type == TypeObject && fields[0].Name == "" {
		if !selfDiffers {
			return nil
		}
		return [][]Field{own, fields}
	}
	forms := [][]Field{fields}
	if wider {
		forms = append(forms, widened(fields)...)
	}
	if selfDiffers {
		forms = append(forms, own)
	}
	if len(forms) == 1 {
		return nil
	}
	return forms
}

// Small integers are looked at one by one where there are few, as each doubles the forms, and where
// the event has no more fields than people write, as each form holds all of them.
const (
	mostEnums  = 4
	mostFields = 32
)

// widened returns the ways in which an EventSource with a manifest may have written integers in more
// bytes than it declares. An enumeration has four at least, and is declared as the integer that it is
// made of. And C# converts arguments to what an overload of WriteEvent takes, all of them int or all
// of them long, but for a string: WriteEvent(1, id, bytes) of an int and a long writes two longs.
func widened(fields []Field) (forms [][]Field) {
	var small, chars, ints []int
	texts := 0
	for i := range fields {
		switch fields[i].Type {
		case TypeInt8, TypeUint8, TypeInt16, TypeUint16:
			small, ints = append(small, i), append(ints, i)
		case TypeChar:
			chars, ints = append(chars, i), append(ints, i)
		case TypeInt32, TypeUint32, TypeInt64:
			ints = append(ints, i)
		case TypeString:
			texts++
		}
	}
	if len(chars) > 0 {
		forms = append(forms, inBytes(fields, 4, slices.Concat(small, chars)))
	}
	if len(small) > mostEnums || len(small) > 0 && len(fields) > mostFields {
		forms = append(forms, inBytes(fields, 4, small))
	} else {
		for set := 1<<len(small) - 1; set > 0; set-- {
			var enums []int
			for bit, i := range small {
				if set>>bit&1 != 0 {
					enums = append(enums, i)
				}
			}
			forms = append(forms, inBytes(fields, 4, enums))
		}
	}
	if len(fields) <= 3 && texts <= 1 && len(ints)+texts == len(fields) {
		if short := slices.DeleteFunc(ints, func(i int) bool { return fields[i].Type == TypeInt64 }); len(short) > 0 {
			forms = append(forms, inBytes(fields, 8, short))
		}
	}
	return forms
}

// inBytes returns fields of which some integers have that many bytes.
func inBytes(fields []Field, size int, which []int) []Field {
	fields = slices.Clone(fields)
	for _, i := range which {
		narrow := fields[i]
		fields[i] = Field{Name: narrow.Name, Type: typeWide, Elem: &narrow, Count: size}
	}
	return fields
}

// withoutEventName returns the fields of a logger's event in the form that .NET before 5
// wrote where the name of the event was null: not even the end of the string.
func withoutEventName(fields []Field) []Field {
	fields = slices.Clone(fields)
	for i := range fields {
		if f := &fields[i]; f.Name == "EventName" && f.Type == TypeString {
			f.Type, f.Elem = TypeFixed, &Field{Type: TypeChar} // of none
		}
	}
	return fields
}

func withTypes(fields []Field, types map[TypeCode]TypeCode) (other []Field, differ bool) {
	other = slices.Clone(fields)
	for i := range other {
		f := &other[i]
		if t, ok := types[f.Type]; ok {
			f.Type, differ = t, true
		}
		var below bool
		f.Fields, below = withTypes(f.Fields, types)
		differ = differ || below
		if f.Elem != nil {
			elem, below := withTypes([]Field{*f.Elem}, types)
			f.Elem, differ = &elem[0], differ || below
		}
	}
	return other, differ
}

// builtIn finds a built-in layout. Revisions only append, so a version newer
// than the table is read by the newest known one.
func builtIn(provider string, event, version int) (best *Layout) {
	for _, l := range builtInEvents()[layoutKey{provider, event}].all() {
		if best == nil || l.version <= version {
			best = l
		}
	}
	return best
}
