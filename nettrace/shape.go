package nettrace

import (
	"bytes"
	"fmt"
	"math/bits"
	"unicode/utf16"
)

// Definitions that damage has hit. One is enough to lose all samples of a file, so those that
// every reader needs are known without: by a provider's name that is one bit away from what it
// can be, or by what their events look like.

// wellKnown are the providers that readers tell by name.
var wellKnown = [][]uint16{}

func init() {
	for _, name := range []string{
		ProviderRuntime, providerRundown, providerPrivate, providerStress, ProviderSampler, "Microsoft-DotNETCore-EventPipe",
		ProviderTasks, ProviderFramework, providerDiagnostic, providerLogging, providerEvents, providerSystem,
		"System.Net.Http", "System.Net.Sockets", "System.Net.NameResolution", "System.Net.Security", "System.Runtime",
		"Microsoft.AspNetCore.Hosting", "Microsoft-AspNetCore-Hosting", "Microsoft-AspNetCore-Server-Kestrel",
	} {
		wellKnown = append(wellKnown, utf16.Encode([]rune(name)))
	}
}

// nameless are the providers that write their events without names; what has one is of an
// EventSource, whatever that is called.
var nameless = map[string]bool{ProviderRuntime: true, providerRundown: true, providerPrivate: true, providerStress: true, ProviderSampler: true}

// knownProvider returns the provider whose name differs from this one in one bit; "" if none does.
func knownProvider(name string) string {
	got := utf16.Encode([]rune(name))
	for _, want := range wellKnown {
		if len(want) != len(got) {
			continue
		}
		n := 0
		for i := range want {
			n += bits.OnesCount16(want[i] ^ got[i])
		}
		if n == 0 {
			return ""
		}
		if n == 1 {
			return string(utf16.Decode(want))
		}
	}
	return ""
}

// systemEvents are the names of the events of Universal.System, by id.
var systemEvents = [...]string{"ExistingProcess", "ProcessCreate", "ProcessExit", "ProcessMapping", "ProcessSymbol", "ProcessMappingMetadata"}

// mendDefinition puts right what one flipped bit made of the names and ids by which readers tell events.
func (r *Reader) mendDefinition(m *Metadata) {
	if known := knownProvider(m.Provider); known != "" && (m.Name == "" || !nameless[known]) {
		r.told(m.Offset, "metadata", fmt.Errorf("%w: provider %q, read as %q", ErrDamaged, m.Provider, known), 0)
		m.Provider = known
	}
	switch m.Provider {
	case ProviderSampler:
		if m.EventID != 0 {
			r.told(m.Offset, "metadata", fmt.Errorf("%w: event %d of %s, read as 0", ErrDamaged, m.EventID, m.Provider), 0)
			m.EventID, m.mended = 0, true
		}
	case providerSystem:
		for id, name := range systemEvents {
			if m.Name == name && m.EventID != id {
				r.told(m.Offset, "metadata", fmt.Errorf("%w: event %d of %s, read as %d (%s)", ErrDamaged, m.EventID, m.Provider, id, name), 0)
				m.EventID, m.mended = id, true
			}
		}
	case providerEvents:
		if len(m.Name) == 3 && m.Name != "cpu" && differ(m.Name, "cpu") == 1 {
			r.told(m.Offset, "metadata", fmt.Errorf("%w: event %q of %s, read as \"cpu\"", ErrDamaged, m.Name, m.Provider), 0)
			m.Name, m.mended = "cpu", true
		}
	}
}

// differ counts the bytes in which two texts of one length differ.
func differ(a, b string) (n int) {
	for i := range len(a) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// An eventShape is a type of event that is known by what its events look like.
type eventShape struct {
	provider string
	name     string // v6
	event    int
	version  int
	like     func(r *Reader, m *Metadata, row *row, payload []byte) bool
	// sure is asked of all events of a block: one that says yes is enough.
	sure func(r *Reader, row *row) bool
}

var recordedShapes = []eventShape{
	// Only the sampler writes what it says of one thread by another one.
	{ProviderSampler, "", 0, 0, func(r *Reader, m *Metadata, row *row, payload []byte) bool {
		return row.capture != row.thread && row.stack != 0 && r.exact(m, payload)
	}, nil},
	{ProviderRuntime, "", 143, 2, func(r *Reader, m *Metadata, row *row, payload []byte) bool {
		return row.stack != 0 && r.frames(row) > 0 && r.exact(m, payload)
	}, nil},
	{providerRundown, "", 144, 2, func(r *Reader, m *Metadata, _ *row, payload []byte) bool {
		return r.exact(m, payload)
	}, nil},
}

var machineShapes = []eventShape{
	{providerEvents, "cpu", 1, 0, oneValue, func(r *Reader, row *row) bool { return r.frames(row) > 1 }},
	{providerEvents, "soft_page_fault", 2, 0, oneValue, func(r *Reader, row *row) bool { return r.frames(row) == 1 }},
	{providerEvents, "cswitch", 3, 0, func(r *Reader, _ *Metadata, row *row, payload []byte) bool {
		c := Cursor{b: payload}
		c.Varuint()
		return c.err == nil && c.Len() == 0 && row.stack != 0
	}, func(r *Reader, row *row) bool { return r.frames(row) > 1 }},
	{providerSystem, systemEvents[3], 3, 0, func(_ *Reader, _ *Metadata, _ *row, payload []byte) bool {
		var x Mapping // recorders write more behind it
		ev := Event{Payload: payload}
		return ev.Mapping(&x) == nil && x.Start < x.End && printable([]byte(x.FileName.String()))
	}, nil},
	{providerSystem, systemEvents[4], 4, 0, textual, nil},
	{providerSystem, systemEvents[5], 5, 0, func(r *Reader, m *Metadata, row *row, payload []byte) bool {
		var x MappingMetadata
		ev := Event{Payload: payload}
		return textual(r, m, row, payload) && ev.MappingMetadata(&x) == nil && isObject(x.Symbol.String()) && isObject(x.Version.String())
	}, nil},
	{providerSystem, systemEvents[0], 0, 0, textual, nil},
}

// oneValue accepts the events of one count each.
func oneValue(_ *Reader, _ *Metadata, row *row, payload []byte) bool {
	return row.stack != 0 && bytes.Equal(payload, []byte{1})
}

// textual accepts a payload that is of the type to its last byte, and longer than chance would have it.
func textual(r *Reader, m *Metadata, _ *row, payload []byte) bool {
	return len(payload) > 8 && r.exact(m, payload)
}

func isObject(text string) bool { return text == "" || text[0] == '{' }

// frames is the number of frames of a row's stack.
func (r *Reader) frames(row *row) int {
	if row.stack == 0 {
		return 0
	}
	return len(r.stacks.bytes(row.stack)) / r.h.PointerSize
}

// recognise gives events whose definition is missing, or makes no sense, the type that all of them
// in this block look like.
func (r *Reader) recognise(blk *block) {
	if !blk.facts.odd {
		return
	}
	seen := map[*Metadata]bool{}
	for i := range blk.rows {
		m := blk.rows[i].meta
		if !m.odd() || seen[m] {
			continue
		}
		seen[m] = true
		if found := r.shapeOf(blk, i, m); found != nil {
			r.retype(blk, m, found)
		}
	}
}

// shapeOf returns the type that all events of a definition in a block, the first of which is row
// from, look like; nil if there is none.
func (r *Reader) shapeOf(blk *block, from int, m *Metadata) *Metadata {
	shapes := recordedShapes
	if r.h.Version == 6 {
		shapes = machineShapes
	}
	for _, s := range shapes {
		like := &Metadata{
			ID: m.ID, Offset: m.Offset, Provider: s.provider, Name: s.name, EventID: s.event, Version: s.version, Level: 4, noopcode: true,
		}
		like.complete()
		if r.fitsAll(blk, from, m, like, &s) {
			return like
		}
	}
	return nil
}

func (r *Reader) fitsAll(blk *block, from int, m, like *Metadata, s *eventShape) bool {
	sure := s.sure == nil
	for i := from; i < len(blk.rows); i++ {
		row := &blk.rows[i]
		if !r.effort(1) {
			return false
		}
		if row.meta != m {
			continue
		}
		if !s.like(r, like, row, blk.buf[row.payload:row.payload+row.size]) {
			return false
		}
		sure = sure || s.sure(r, row)
	}
	return sure
}

// retype gives the events of one definition another one, from here on. The old one stays as it is:
// events that were read before have it.
func (r *Reader) retype(blk *block, from, to *Metadata) {
	n, first := 0, -1
	for i := range blk.rows {
		if blk.rows[i].meta != from {
			continue
		}
		if first < 0 {
			first = i
		}
		blk.rows[i].meta = to
		n++
	}
	if from.Unknown {
		r.stats.UnknownMeta -= int64(n)
	}
	r.meta.define(to)
	r.told(blk.offset+int64(blk.rows[first].at()), "event",
		fmt.Errorf("%w: metadata id %d is not defined; its events look like those of %s and are read as such", ErrDamaged, to.ID, to.Provider+" "+to.EventName()), 0)
}
