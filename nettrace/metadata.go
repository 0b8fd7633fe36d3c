package nettrace

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits on what a definition may hold; far beyond what real files have, they
// bound the memory that hostile ones can ask for.
const (
	maxMetadata   = 1 << 18 // definitions in one file
	maxTypeDepth  = 32      // nested objects and arrays
	maxFieldsEach = 4096    // of one definition, which each of its events may cost
	maxDescribed  = 1 << 20 // fields and pairs of all definitions
	maxDefinition = 1 << 20 // bytes; the runtime's have 64 KiB at most
)

// metadataTable finds metadata by the file's id.
type metadataTable struct {
	all   []*Metadata // by Index
	dense []*Metadata // by ID below denseIDs
	rest  map[uint32]*Metadata
	lost  map[uint32]*Metadata // stand-ins for ids that were never defined

	described int // fields and pairs of all

	last uint32 // id of the definition read last, also of one that could not be read
}

const denseIDs = 1 << 14

func (t *metadataTable) find(id uint32) *Metadata {
	if id < uint32(len(t.dense)) {
		return t.dense[id]
	}
	return t.rest[id]
}

func (t *metadataTable) set(id uint32, m *Metadata) {
	if id >= denseIDs {
		if t.rest == nil {
			t.rest = map[uint32]*Metadata{}
		}
		t.rest[id] = m
		return
	}
	for uint32(len(t.dense)) <= id {
		t.dense = append(t.dense, nil)
	}
	t.dense[id] = m
}

// clear forgets the ids (v6, sequence point with flag bit 1), not the definitions.
func (t *metadataTable) clear() {
	clear(t.dense)
	clear(t.rest)
}

// define makes m known. It reports whether an id that was live changed its meaning.
func (t *metadataTable) define(m *Metadata) (redefined, full bool) {
	old := t.find(m.ID)
	if old != nil && old.Provider == m.Provider && string(old.Raw) == string(m.Raw) && old.ProviderID == m.ProviderID {
		return false, false // a repetition: keep the pointer
	}
	t.last = m.ID
	if t.described += countFields(m.Fields) + len(m.KeyValues); len(t.all) >= maxMetadata || t.described > maxDescribed {
		return false, true
	}
	m.Index = len(t.all)
	t.all = append(t.all, m)
	t.set(m.ID, m)
	m.complete()
	return old != nil, false
}

// lacks reports whether it is the definition of an id that is missing, and not a flipped bit that made
// the id: v3 to v5 count them up, each defined before its first event.
func (t *metadataTable) lacks(id uint32, version int) bool {
	return version >= 3 && version < 6 && id > 0 && id <= t.last && t.find(id) == nil
}

// unknown returns the stand-in for an id without definition.
func (t *metadataTable) unknown(id uint32) *Metadata {
	m := t.lost[id]
	if m == nil {
		if id == t.last+1 { // the next definition is missing with its block: no damage tells of it
			t.last = id
		}
		if len(t.lost) >= 1024 {
			id = 0
			if m = t.lost[0]; m != nil {
				return m
			}
		}
		m = &Metadata{Index: len(t.all), ID: id, Provider: "?", Unknown: true, noopcode: true}
		if t.lost == nil {
			t.lost = map[uint32]*Metadata{}
		}
		t.lost[id] = m
		t.all = append(t.all, m)
		m.complete()
	}
	return m
}

// complete fills in what follows from the definition: the opcode that a name
// implies, the layout, the display name.
func (m *Metadata) complete() {
	m.garbled = !printable([]byte(m.Provider))
	if m.noopcode {
		switch {
		case hasSuffixFold(m.Name, "Start"):
			m.Opcode = 1
		case hasSuffixFold(m.Name, "Stop"):
			m.Opcode = 2
		}
	}
	if t, ok := tplNames[m.EventID]; ok && m.Provider == ProviderTasks {
		m.shown = t.name
		if m.noopcode && m.Opcode == 0 {
			m.Opcode = t.opcode
		}
	}
	m.layout = findLayout(m, m.Version)
	if m.Name == "" && m.layout != nil && m.layout.BuiltIn {
		m.Opcode = m.layout.opcode
	}
	m.name = m.displayName(m.layout, m.Opcode)
	m.Classify()
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}

// displayName builds what TraceEvent prints: the task, a slash, the opcode.
func (m *Metadata) displayName(l *Layout, opcode int) string {
	switch {
	case l != nil && l.name != "":
		return l.name
	case m.shown != "":
		return m.shown
	}
	name := m.Name
	switch {
	case m.Unknown:
		return fmt.Sprintf("Metadata(%d)", m.ID)
	case name == "":
		return fmt.Sprintf("EventID(%d)", m.EventID)
	case opcode == 1 && hasSuffixFold(name, "Start"):
		name = name[:len(name)-5]
	case opcode == 2 && hasSuffixFold(name, "Stop"):
		name = name[:len(name)-4]
	}
	op := opcodeName(opcode)
	switch {
	case op == "":
		return name
	case name == "":
		return op
	}
	return name + "/" + op
}

// tplNames are the names and opcodes of task events: TplEventSource itself names
// them otherwise ("TraceOperationBegin") and declares no opcodes.
var tplNames = map[int]struct {
	name   string
	opcode int
}{
	1: {"Loop/Start", 1}, 2: {"Loop/Stop", 2}, 3: {"Invoke/Start", 1}, 4: {"Invoke/Stop", 2},
	5: {"ForkJoin/Start", 1}, 6: {"ForkJoin/Stop", 2},
	7: {"TaskScheduled/Send", 9}, 8: {"TaskExecute/Start", 1}, 9: {"TaskExecute/Stop", 2},
	10: {"TaskWait/Send", 9}, 11: {"TaskWait/Stop", 2}, 12: {"AwaitTaskContinuationScheduled/Send", 9},
	14: {"TraceOperation/Start", 1}, 15: {"TraceOperation/Stop", 2},
	17: {"TraceSynchronousWork/Start", 1}, 18: {"TraceSynchronousWork/Stop", 2},
}

func opcodeName(opcode int) string {
	switch opcode {
	case 0:
		return ""
	case 1:
		return "Start"
	case 2:
		return "Stop"
	case 3:
		return "DCStart"
	case 4:
		return "DCStop"
	case 5:
		return "Extension"
	case 6:
		return "Reply"
	case 7:
		return "Resume"
	case 8:
		return "Suspend"
	case 9:
		return "Send"
	case 240:
		return "Receive"
	}
	return strconv.Itoa(opcode)
}

// EventName is the display name of the event type as TraceEvent prints it:
// "GC/Start", "Request/Start", "EventCounters". It is never empty.
func (m *Metadata) EventName() string { return m.name }

// Layout returns the field list of the event type: that of the file's
// metadata, else a built-in one by provider, id and version, else nil. A
// version newer than the tables has the newest known layout: revisions append.
func (m *Metadata) Layout() *Layout { return m.layout }

// EventName is the display name of the event as TraceEvent prints it; see Metadata.EventName.
func (ev *Event) EventName() string {
	m := ev.Metadata
	if ev.Opcode == m.Opcode && ev.Version == m.Version {
		return m.name
	}
	return m.displayName(ev.Layout(), ev.Opcode)
}

// Layout returns the field list of the event; see Metadata.Layout. It differs
// from that of the metadata where a label (v6) overrides the version.
func (ev *Event) Layout() *Layout {
	m := ev.Metadata
	if ev.Version == m.Version || len(m.Fields) > 0 {
		return m.layout
	}
	return findLayout(m, ev.Version)
}

// parseMetadata reads the payload of a metadata event of v3 to v5
// (nettrace.md section 5.1). Only the id and the provider name are written by
// the runtime itself; what follows comes from the provider and may be short.
func parseMetadata(b []byte, offset int64) (*Metadata, error) {
	c := Cursor{b: b}
	id := c.U32()
	m := &Metadata{ID: id, Provider: c.UTF16().String(), Offset: offset}
	if c.err != nil {
		return nil, c.err
	}
	m.parseBlob(c.b[c.pos:])
	return m, nil
}

// parseBlob reads what a provider says of its event: v3 to v5 behind the
// provider name, v1 and v2 behind the length.
func (m *Metadata) parseBlob(b []byte) {
	m.Raw = append([]byte(nil), b...)
	m.noopcode = true
	c := Cursor{b: m.Raw}
	m.EventID = int(uint16(c.U32()))
	m.Name = c.UTF16().String()
	m.Keywords = c.U64()
	m.Version = int(uint8(c.U32()))
	m.Level = int(c.I32())
	if c.Len() == 0 || len(b) > maxDefinition {
		return // an old or truncated definition: no field list
	}
	m.HasFieldList = true
	fields, ok := fieldsV1(&c, 0)
	if !ok || c.err != nil {
		return
	}
	m.Fields = fields
	for c.Len() >= 5 {
		n := c.I32()
		kind := c.U8()
		tag := Cursor{b: c.Bytes(int(n))}
		if c.err != nil {
			return
		}
		switch kind {
		case 1:
			op := tag.U8()
			if tag.err == nil {
				m.Opcode, m.noopcode = int(op), false
			}
		case 2:
			if fields, ok := fieldsV2(&tag, 0); ok && tag.err == nil {
				m.Fields = fields
			}
		}
	}
}

// parseOld reads the metadata event of v1 and v2 (section 5.2).
func parseOld(b []byte, version int, offset int64) (*Metadata, error) {
	c := Cursor{b: b}
	m := &Metadata{ID: uint32(offset), Offset: offset}
	if version == 1 {
		m.ProviderID = c.GUID()
		m.Provider = providerName(m.ProviderID)
	} else {
		m.Provider = c.UTF16().String()
	}
	eventID, ver, n := c.U32(), c.U32(), c.I32()
	if c.err != nil {
		return nil, c.err
	}
	m.noopcode = true
	if n > 0 {
		if int(n) > c.Len() {
			n = int32(c.Len())
		}
		m.parseBlob(c.Bytes(int(n)))
	}
	m.EventID, m.Version = int(uint16(eventID)), int(uint8(ver))
	return m, nil
}

// countFields counts the fields of a definition, with those inside others.
func countFields(fields []Field) int {
	n := len(fields)
	for i := range fields {
		f := &fields[i]
		n += countFields(f.Fields)
		for e := f.Elem; e != nil; e = e.Elem {
			n += 1 + countFields(e.Fields)
		}
	}
	return n
}

// fieldsV1 reads a count and that many fields in the first form, where the name comes last.
func fieldsV1(c *Cursor, depth int) ([]Field, bool) {
	n := c.I32()
	if n < 0 || n > maxFieldsEach || int(n) > c.Len()/6 || depth > maxTypeDepth {
		return nil, n == 0
	}
	fields := make([]Field, 0, n)
	for range n {
		f := Field{Type: TypeCode(c.U32())}
		switch {
		case f.Type == TypeObject:
			var ok bool
			if f.Fields, ok = fieldsV1(c, depth+1); !ok {
				return nil, false
			}
		case f.Type >= TypeArray || !f.Type.valid(): // an array only tag 2 describes
			return nil, false
		}
		f.Name = c.UTF16().String()
		if c.err != nil {
			return nil, false
		}
		fields = append(fields, f)
	}
	return fields, true
}

// fieldsV2 reads a count and that many fields in the form of tag 2, where each has its size.
func fieldsV2(c *Cursor, depth int) ([]Field, bool) {
	n := c.I32()
	if n < 0 || n > maxFieldsEach || int(n) > c.Len()/10 || depth > maxTypeDepth {
		return nil, n == 0
	}
	fields := make([]Field, 0, n)
	for range n {
		size := c.I32()
		row := Cursor{b: c.Bytes(int(size) - 4)}
		if c.err != nil {
			return nil, false
		}
		name := row.UTF16().String()
		f, ok := typeV2(&row, depth)
		if !ok || row.err != nil {
			return nil, false
		}
		f.Name = name
		fields = append(fields, f)
	}
	return fields, true
}

func typeV2(c *Cursor, depth int) (Field, bool) {
	f := Field{Type: TypeCode(c.U32())}
	ok := f.Type.valid() && f.Type <= TypeArray && depth <= maxTypeDepth
	switch {
	case !ok:
	case f.Type == TypeArray:
		var elem Field
		elem, ok = typeV2(c, depth+1)
		f.Elem = &elem
	case f.Type == TypeObject:
		f.Fields, ok = fieldsV2(c, depth+1)
	}
	return f, ok
}

// parseRow reads a metadata row of v6 (section 5.3).
func parseRow(b []byte, offset int64) (*Metadata, error) {
	c := Cursor{b: b}
	m := &Metadata{Offset: offset, ID: c.Varuint32(), noopcode: true, row: true}
	m.Provider = c.StringV().String()
	if c.err != nil {
		return nil, c.err
	}
	m.Raw = append([]byte(nil), c.b[c.pos:]...)
	c = Cursor{b: m.Raw}
	m.EventID = int(c.Varuint32())
	m.Name = c.StringV().String()
	fields, ok := fieldsV6(&c, 0)
	if !ok || c.err != nil {
		m.damaged = true
		return m, ErrDamaged
	}
	m.Fields, m.HasFieldList = fields, len(fields) > 0
	o := Cursor{b: c.Bytes(int(c.U16()))}
	if c.err != nil {
		m.damaged = true
		return m, c.err
	}
	for o.Len() > 0 && o.err == nil {
		switch kind := o.U8(); kind {
		case 1:
			m.Opcode, m.noopcode = int(o.U8()), false
		case 3:
			m.Keywords = o.U64()
		case 4:
			m.Message = o.StringV().String()
		case 5:
			m.Description = o.StringV().String()
		case 6:
			m.KeyValues = append(m.KeyValues, KeyValue{o.StringV().String(), o.StringV().String()})
		case 7:
			m.ProviderID = o.GUID()
		case 8:
			m.Level = int(o.U8())
		case 9:
			m.Version = int(o.U8())
		default:
			return m, fmt.Errorf("optional metadata of %w %d", errKind, kind)
		}
	}
	m.damaged = o.err != nil
	return m, o.err
}

func fieldsV6(c *Cursor, depth int) ([]Field, bool) {
	n := int(c.U16())
	if n > c.Len()/4 || depth > maxTypeDepth {
		return nil, n == 0
	}
	fields := make([]Field, 0, n)
	known := true
	for range n {
		row := Cursor{b: c.Bytes(int(c.U16()))}
		if c.err != nil {
			return nil, false
		}
		name := row.StringV().String()
		f, ok := typeV6(&row, depth)
		if known = known && ok && row.err == nil; !known {
			// A type this package does not know: what follows in a payload cannot be placed. What
			// follows in the definition can: each field has its size.
			continue
		}
		f.Name = name
		fields = append(fields, f)
	}
	return fields, known || depth == 0
}

func typeV6(c *Cursor, depth int) (Field, bool) {
	f := Field{Type: TypeCode(c.U8())}
	ok := f.Type.valid() && depth <= maxTypeDepth
	if !ok {
		return f, false
	}
	switch f.Type {
	case TypeArray, TypeRelLoc, TypeDataLoc, TypeFixed:
		var elem Field
		elem, ok = typeV6(c, depth+1)
		f.Elem = &elem
		if f.Type == TypeFixed {
			f.Count = int(c.U16())
		}
	case TypeObject:
		f.Fields, ok = fieldsV6(c, depth+1)
	}
	return f, ok
}

// valid reports whether a file may use the code.
func (t TypeCode) valid() bool { return t == TypeObject || t >= TypeBool32 && t <= TypeBool8 }

// providerName names the providers of v1 files, which hold GUIDs only.
func providerName(id GUID) string {
	s := id.String()
	switch s {
	case "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4":
		return ProviderRuntime
	case "a669021c-c450-4609-a035-5af59af4df18":
		return providerRundown
	case "763fd754-7086-4dfe-95eb-c01a46faf4ca":
		return providerPrivate
	case "cc2bcbba-16b6-4cf3-8990-d74c2e8af500":
		return providerStress
	case "3c530d44-97ae-513a-1e6d-783e8f8e03a9":
		return ProviderSampler
	case "2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5":
		return ProviderTasks
	}
	return s
}

// Providers by which events are told apart.
const (
	ProviderRuntime   = "Microsoft-Windows-DotNETRuntime"     // the runtime's own
	ProviderSampler   = "Microsoft-DotNETCore-SampleProfiler" // what the threads run, in intervals
	ProviderTasks     = "System.Threading.Tasks.TplEventSource"
	ProviderFramework = "System.Diagnostics.Eventing.FrameworkEventSource" // the thread pool's queue, timers
)

// Providers whose events this package knows without metadata.
const (
	providerRundown    = ProviderRuntime + "Rundown"
	providerPrivate    = ProviderRuntime + "Private"
	providerStress     = ProviderRuntime + "Stress"
	providerDiagnostic = "Microsoft-Diagnostics-DiagnosticSource"
	providerLogging    = "Microsoft-Extensions-Logging"
	providerEvents     = "Universal.Events"
	providerSystem     = "Universal.System"
)
