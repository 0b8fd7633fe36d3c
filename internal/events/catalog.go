package events

import (
	"slices"
	"strconv"

	"github.com/tracefix/tracefix/internal/text"
	"github.com/tracefix/tracefix/nettrace"
)

// A kind is what all events of one type have in common, prepared once: the parts of
// the line that do not change, and the verdict of the filters.
type kind struct {
	meta     *nettrace.Metadata
	version  int
	opcode   int
	level    int
	keywords uint64

	layout *nettrace.Layout
	head   []byte   // JSON from "provider" to "opcode"
	keys   [][]byte // JSON of the field names with the colon, by field
	quoted []bool   // by field: the number is written as text
	title  string   // for text: provider/name
	wanted bool
}

func (k *kind) is(ev *nettrace.Event) bool {
	return k.meta == ev.Metadata && k.version == ev.Version && k.opcode == ev.Opcode && k.level == ev.Level && k.keywords == ev.Keywords
}

// enumerations are fields whose numbers the reference library lists as text, since its
// parsers for these providers know an enumeration for them; lists are compared. All
// other providers but the runtime's are listed by the types in the file.
var enumerations = map[string][]string{
	nettrace.ProviderSampler: {"Type"},
	nettrace.ProviderTasks:   {"Behavior", "Status", "Relation", "Work"},
}

// maxVariants limits how many kinds are kept of one definition: labels of v6 may
// give every event its own keywords.
const maxVariants = 16

// A catalog holds the kinds of a file.
type catalog struct {
	filter *filter
	byMeta [][]*kind // by Metadata.Index; the first is the one seen first
	spare  kind      // for what is not kept
}

// of returns the kind of ev. It is valid until the next call.
func (c *catalog) of(ev *nettrace.Event) *kind {
	if i := ev.Metadata.Index; uint(i) < uint(len(c.byMeta)) {
		for _, k := range c.byMeta[i] {
			if k.is(ev) {
				return k
			}
		}
	}
	return c.add(ev)
}

func (c *catalog) add(ev *nettrace.Event) *kind {
	k := &c.spare
	i := ev.Metadata.Index
	if i >= 0 && i <= len(c.byMeta)+1<<16 {
		for len(c.byMeta) <= i {
			c.byMeta = append(c.byMeta, nil)
		}
		if len(c.byMeta[i]) < maxVariants {
			k = new(kind)
			c.byMeta[i] = append(c.byMeta[i], k)
		}
	}
	name := ev.EventName()
	*k = kind{
		meta: ev.Metadata, version: ev.Version, opcode: ev.Opcode, level: ev.Level, keywords: ev.Keywords,
		layout: ev.Layout(),
		head:   k.head[:0], keys: k.keys[:0],
		quoted: k.quoted[:0],
		title:  ev.Metadata.Provider + "/" + name,
		wanted: c.filter.wantsKind(ev, name),
	}
	b := text.AppendJSON(append(k.head, `,"provider":`...), ev.Metadata.Provider)
	b = strconv.AppendInt(append(b, `,"id":`...), int64(ev.Metadata.EventID), 10)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(ev.Version), 10)
	b = text.AppendJSON(append(b, `,"name":`...), name)
	b = strconv.AppendInt(append(b, `,"level":`...), int64(ev.Level), 10)
	b = strconv.AppendUint(append(b, `,"keywords":"0x`...), ev.Keywords, 16)
	k.head = strconv.AppendInt(append(b, `","opcode":`...), int64(ev.Opcode), 10)
	if k.layout != nil {
		used := map[string]int{}
		for i := range k.layout.Fields {
			f := &k.layout.Fields[i]
			// Structs among the arguments of an event have no name, all of them.
			name := f.Name
			if used[f.Name]++; used[f.Name] > 1 {
				name += "_" + strconv.Itoa(used[f.Name])
			}
			k.keys = append(k.keys, append(text.AppendJSON(nil, name), ':'))
			k.quoted = append(k.quoted, slices.Contains(enumerations[ev.Metadata.Provider], f.Name))
		}
	}
	return k
}
