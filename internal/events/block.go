package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"encoding/json"

	"github.com/tracefix/tracefix/internal/text"
)

// Sizes of the shared memory of a .NET Framework process (counters.md section 3).
const (
	controlSize = 2048
	maxBlocks   = 32
	headerSize  = 40
	size64      = 384
	size32      = 280
)

// Flags of a control block.
const (
	flagUses        = 1
	flagInitialized = 2
	flagX86         = 4
)

// ErrNoBlock says that bytes are no dump of performance counters.
var ErrNoBlock = errors.New("not a .NET Framework performance-counter block")

// A Block is what one runtime of a .NET Framework process counted.
type Block struct {
	Index     int    `json:"block"`
	RuntimeID uint32 `json:"runtime"`
	Version   int    `json:"version"`
	Bits      int    `json:"bits,omitempty"` // 32 or 64
	// Torn is set where the dump was taken while the runtime was writing.
	Torn bool `json:"torn,omitempty"`
	// Skipped is why the block was not read; it has no Figures then.
	Skipped string   `json:"skipped,omitempty"`
	Figures []Figure `json:"figures,omitempty"`
}

// A Figure is one value of a Block.
type Figure struct {
	Section string  `json:"section"`
	Name    string  `json:"name"`
	Value   int64   `json:"value"`
	Percent float64 `json:"percent,omitempty"` // of a derived share
	Derived bool    `json:"derived,omitempty"` // computed from the others
}

type fieldKind uint8

const (
	kindU32 fieldKind = iota
	kindWord
	kindI64
	kindTri // current, total
)

// blockFields are fields of one kind, one after the other, with spaces between their names.
type blockFields struct {
	kind  fieldKind
	names string
}

type blockSection struct {
	name   string
	fields []blockFields
}

// blockSections is the layout; offsets follow from it, for each size of a word.
var blockSections = []blockSection{
	{"GC", []blockFields{
		{kindWord, "GenCollections0 GenCollections1 GenCollections2 PromotedMem0 PromotedMem1 PromotedFinalizationMem ProcessID " +
			"GenHeapSize0 GenHeapSize1 GenHeapSize2 TotalCommittedBytes TotalReservedBytes LargeObjSize SurviveFinalize Handles Alloc LargeAlloc InducedGCs"},
		{kindU32, "TimeInGC TimeInGCBase"}, {kindWord, "PinnedObj SinkBlocks"},
	}},
	{"Context", []blockFields{{kindU32, "RemoteCalls Channels Proxies Classes ObjAlloc Contexts"}}},
	{"Interop", []blockFields{{kindU32, "CCW Stubs Marshalling TLBImports TLBExports"}}},
	{"Loading", []blockFields{
		{kindTri, "ClassesLoaded AppDomains Assemblies"}, {kindI64, "TimeLoading"},
		{kindU32, "AsmSearchLength LoadFailures"}, {kindWord, "LoaderHeapSize"}, {kindU32, "AppDomainsUnloaded"},
	}},
	{"Exceptions", []blockFields{{kindU32, "Thrown FiltersExecuted FinallysExecuted ThrowToCatchStackDepth"}}},
	{"LocksAndThreads", []blockFields{{kindU32, "Contention"}, {kindTri, "QueueLength"}, {kindU32, "CurrentThreadsLogical CurrentThreadsPhysical"}, {kindTri, "RecognizedThreads"}}},
	{"Jit", []blockFields{{kindU32, "MethodsJitted"}, {kindTri, "ILJitted"}, {kindU32, "JitFailures TimeInJit TimeInJitBase"}}},
	{"Security", []blockFields{{kindU32, "TotalRuntimeChecks"}, {kindI64, "TimeAuthorize"}, {kindU32, "LinkChecks TimeRTchecks TimeRTchecksBase StackWalkDepth"}}},
}

// A placed field is a scalar with its offset.
type placed struct {
	section, name string
	offset, size  int
}

// layout assigns offsets: every field at a multiple of its alignment, which pack limits;
// a section likewise, at that of its widest field. 32-bit writers pack to 4.
func layout(word, pack int) (fields []placed, total int) {
	align := func(at, a int) int { return (at + a - 1) / a * a }
	at, widest := 4, min(4, pack) // Size and Attributes
	for _, s := range blockSections {
		most := 4
		for _, f := range s.fields {
			most = max(most, alignment(f.kind, word, pack))
		}
		widest = max(widest, most)
		at = align(at, most)
		for _, f := range s.fields {
			for _, name := range strings.Fields(f.names) {
				at = align(at, alignment(f.kind, word, pack))
				switch f.kind {
				case kindU32:
					fields = append(fields, placed{s.name, name, at, 4})
					at += 4
				case kindWord:
					fields = append(fields, placed{s.name, name, at, word})
					at += word
				case kindI64:
					fields = append(fields, placed{s.name, name, at, 8})
					at += 8
				case kindTri:
					fields = append(fields, placed{s.name, name + ".Current", at, 4}, placed{s.name, name + ".Total", at + 4, 4})
					at += 8
				}
			}
		}
		at = align(at, most)
	}
	return fields, align(at, widest)
}

func alignment(k fieldKind, word, pack int) int {
	switch k {
	case kindWord:
		return min(word, pack)
	case kindI64:
		return min(8, pack)
	}
	return min(4, pack)
}

// IsBlock reports whether content that begins with head may be a dump of counters.
func IsBlock(head []byte) bool {
	blocks, err := ParseBlocks(head)
	if err != nil {
		return false
	}
	for _, b := range blocks {
		if b.Skipped == "" {
			return true
		}
	}
	return false
}

// ParseBlocks reads a dump: up to 32 control blocks of 2,048 bytes, of which the last
// may be short, or the counters alone, without a header. Free blocks are left out;
// others that cannot be read say why.
func ParseBlocks(data []byte) ([]Block, error) {
	for bits, size := range map[int]int{64: size64, 32: size32} {
		if len(data) == size && int(binary.LittleEndian.Uint16(data)) == size {
			return []Block{{Bits: bits, Figures: figures(data, bits)}}, nil
		}
	}
	if len(data) < headerSize {
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrNoBlock, len(data))
	}
	var blocks []Block
	for i := 0; i < maxBlocks && i*controlSize+headerSize <= len(data); i++ {
		at := i * controlSize
		b, used := parseBlock(data[at:min(at+controlSize, len(data))])
		if !used {
			continue
		}
		b.Index = i
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%w: no block is in use", ErrNoBlock)
	}
	return blocks, nil
}

func parseBlock(b []byte) (blk Block, used bool) {
	le := binary.LittleEndian
	counter, runtime := le.Uint32(b), le.Uint32(b[4:])
	if counter == 0 || runtime == 0 {
		return blk, false
	}
	flags := le.Uint16(b[18:])
	blk = Block{RuntimeID: runtime, Version: int(le.Uint16(b[16:])), Torn: counter&1 != 0}
	size, entries := le.Uint32(b[20:]), le.Uint32(b[28:])
	offset, length := le.Uint32(b[32:]), le.Uint32(b[36:])
	skip := func(format string, args ...any) (Block, bool) {
		blk.Skipped = fmt.Sprintf(format, args...)
		return blk, true
	}
	switch {
	case blk.Version > 4:
		return skip("version %d is unknown, expected 4", blk.Version)
	case flags == 0:
		return skip("the runtime had not begun to write")
	case flags&flagUses != 0 && flags&flagInitialized == 0:
		return skip("the runtime had not initialized it")
	case size < 1 || size > controlSize:
		return skip("block size %d, expected 1 to %d", size, controlSize)
	case entries != 1:
		return skip("%d entries, expected 1", entries)
	case offset == 0xffffffff:
		return skip("the entry is empty")
	}
	pos := int64(offset)
	if pos < headerSize {
		pos += headerSize
	}
	if pos+2 > int64(len(b)) {
		return skip("the entry at %d lies outside the block", offset)
	}
	own := uint32(le.Uint16(b[pos:]))
	bits := 64
	if flags&flagX86 != 0 {
		bits = 32
	}
	want := map[int]uint32{64: size64, 32: size32}[bits]
	switch {
	case own != want || length != want:
		return skip("the counters have %d bytes (entry: %d), expected %d in %d-bit processes", own, length, want, bits)
	case pos+int64(want) > int64(len(b)):
		return skip("the counters end after the block: it was cut off")
	}
	blk.Bits = bits
	blk.Figures = figures(b[pos:], bits)
	return blk, true
}

func figures(b []byte, bits int) []Figure {
	fields, _ := layout(bits/8, bits/8)
	values := map[string]int64{}
	var out []Figure
	for _, f := range fields {
		var v int64
		if f.size == 8 {
			v = int64(binary.LittleEndian.Uint64(b[f.offset:]))
		} else {
			v = int64(binary.LittleEndian.Uint32(b[f.offset:]))
		}
		values[f.name] = v
		out = append(out, Figure{Section: f.section, Name: f.name, Value: v})
	}
	share := func(section, name, part, base string) {
		if values[base] > 0 {
			out = append(out, Figure{Section: section, Name: name, Percent: 100 * float64(values[part]) / float64(values[base]), Derived: true})
		}
	}
	// Generation 0 is a budget and no size, so it is left out.
	out = append(out, Figure{Section: "GC", Name: "BytesInAllHeaps", Value: values["GenHeapSize1"] + values["GenHeapSize2"] + values["LargeObjSize"], Derived: true})
	share("GC", "PercentTimeInGC", "TimeInGC", "TimeInGCBase")
	share("Jit", "PercentTimeInJit", "TimeInJit", "TimeInJitBase")
	share("Security", "PercentTimeInRTChecks", "TimeRTchecks", "TimeRTchecksBase")
	return out
}

// SelectFigures leaves the figures of these sections and names, of them the first limit (0 is all), and
// returns how many it dropped for their names and for the limit.
func SelectFigures(blocks []Block, sections, names []string, limit int) (other, more int) {
	kept := 0
	for i := range blocks {
		blocks[i].Figures = slices.DeleteFunc(blocks[i].Figures, func(f Figure) bool {
			if !text.List(sections).Match(f.Section) || !text.List(names).Match(f.Name) {
				other++
				return true
			}
			if limit > 0 && kept == limit {
				more++
				return true
			}
			kept++
			return false
		})
	}
	return other, more
}

// BlockFormats are the forms in which blocks are written. What others need, a block does not hold: when
// the figures were counted, and what kind each is of.
var BlockFormats = []string{"csv", "table", "json", "ndjson"}

// WriteBlocks writes blocks in one of BlockFormats: ndjson has a line for each figure.
func WriteBlocks(w io.Writer, blocks []Block, format string) error {
	var b []byte
	value := func(f *Figure) string {
		if f.Derived && f.Percent > 0 {
			return strconv.FormatFloat(f.Percent, 'f', -1, 64)
		}
		return strconv.FormatInt(f.Value, 10)
	}
	switch format {
	case "json":
		j, err := json.MarshalIndent(map[string]any{"blocks": blocks}, "", "  ")
		if err != nil {
			return err
		}
		b = append(j, '\n')
	case "ndjson":
		for i := range blocks {
			for _, f := range blocks[i].Figures {
				j, err := json.Marshal(struct {
					Block   int    `json:"block"`
					Runtime uint32 `json:"runtime"`
					Figure
				}{blocks[i].Index, blocks[i].RuntimeID, f})
				if err != nil {
					return err
				}
				b = append(append(b, j...), '\n')
			}
		}
	case "table":
		for i := range blocks {
			k := &blocks[i]
			if k.Skipped != "" {
				b = fmt.Appendf(b, "block %d, runtime %d: not read: %s\n", k.Index, k.RuntimeID, k.Skipped)
				continue
			}
			b = fmt.Appendf(b, "block %d, runtime %d, %d-bit", k.Index, k.RuntimeID, k.Bits)
			if k.Torn {
				b = append(b, ", taken while it was being written"...)
			}
			b = append(b, '\n')
			section := ""
			for _, f := range k.Figures {
				name := ""
				if f.Section != section {
					section = f.Section
					name = section
				}
				b = fmt.Appendf(b, "  %-16s%-26s%20s\n", name, f.Name, value(&f))
			}
		}
	case "csv":
		b = append(b, "block,runtime,section,name,value\n"...)
		for i := range blocks {
			for _, f := range blocks[i].Figures {
				b = append(b, strings.Join([]string{strconv.Itoa(blocks[i].Index), strconv.FormatUint(uint64(blocks[i].RuntimeID), 10), f.Section, f.Name, value(&f)}, ",")...)
				b = append(b, '\n')
			}
		}
	default:
		return fmt.Errorf("a performance-counter block cannot become %s", format)
	}
	_, err := w.Write(b)
	return err
}
