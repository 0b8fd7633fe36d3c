package profile

import (
	"sort"
	"strings"

	"github.com/tracefix/tracefix/internal/waits"
)

// A TypeTally finds out whether a recorder told managed code from the rest. Two did not: the
// sampler of .NET 9 and 10 called nearly all samples external until dotnet/runtime#123996 was
// mended, and on Windows that of .NET 5 and older did (dotnet/runtime#45179).
//
// A thread that waits shows one stack again and again. Of the samples that show another stack than
// the one before, or managed code, at least 57 in 100 are managed in 34 recordings of runtimes that
// tell, and at most 4.1 in 100 in 13 of runtimes that do not. A program in native code may have as
// few, so that of other runtimes hardly any may be managed.
type TypeTally struct {
	managed, moved int64
	suspect        bool
}

const (
	// leastMoved is how many external samples with another stack it takes to judge.
	leastMoved = 200
	// leastManaged is the share of managed ones below which nothing was told, leastOfSuspects that
	// of versions that are known for it.
	leastManaged, leastOfSuspects = 0.01, 0.1
)

// Runtime takes in the version of the runtime, as 9.0.5.
func (t *TypeTally) Runtime(version string) {
	major, _, _ := strings.Cut(version, ".")
	t.suspect = t.suspect || major == "9" || major == "10"
}

// A Look is what is known of the stack of the newest sample of a thread: its depth and its innermost address.
type Look struct {
	depth int
	leaf  uint64
}

// Look adds a sample of the runtime's sampler, last being that of its thread before, which it becomes.
func (t *TypeTally) Look(typ SampleType, last *Look, depth int, leaf uint64) {
	now := Look{depth, leaf}
	t.Add(typ, now != *last)
	*last = now
}

// Add is Look where it is known whether the sample of the thread before had another stack.
func (t *TypeTally) Add(typ SampleType, moved bool) {
	switch {
	case typ == SampleManaged:
		t.managed++
	case typ == SampleExternal && moved:
		t.moved++
	}
}

// Untyped reports whether the recorder told nothing.
func (t *TypeTally) Untyped() bool {
	least := leastManaged
	if t.suspect {
		least = leastOfSuspects
	}
	return t.moved >= leastMoved && float64(t.managed) < least*float64(t.managed+t.moved)
}

// Told reports whether so many samples are managed that more are not needed to know that the
// recorder told them.
func (t *TypeTally) Told() bool {
	return t.managed >= leastMoved && float64(t.managed) >= leastOfSuspects*float64(t.managed+t.moved)
}

// UntypedNote says what it means that nothing was recorded, and what to do.
const UntypedNote = "the runtime marked nearly all samples as native code or waiting, those of managed code too, as .NET 9 and 10 did before dotnet/runtime#123996 was mended: " +
	"what stands in no wait, lock or call of the system counts as managed code here; a newer runtime tells"

// blocked marks the methods at which a thread is held to wait or to be in native code where the
// recorder did not tell.
func (t *Table) blocked() []bool {
	out := make([]bool, t.Methods())
	for i := range out {
		out[i] = t.MethodAt(MethodID(i)).blocks()
	}
	return out
}

// blocks reports whether m waits, locks or calls the system. What has no name is mostly a stub on
// the way to such.
func (m Method) blocks() bool {
	if m.Kind != Managed || strings.HasPrefix(m.Name, "0x") || m.Name == "?" {
		return true
	}
	if strings.HasPrefix(m.Name, "Interop+") || strings.HasPrefix(m.Name, "Microsoft.Win32.SafeHandles.") || strings.Contains(m.Name, "IL_STUB_PInvoke") {
		return true
	}
	name, _, _ := strings.Cut(m.Name, "(")
	return waits.Of(name) >= waits.Near
}

// A typing gives samples the types that the recorder did not tell.
type typing struct {
	table   *Table
	blocked []bool // by method: threads are held to be blocked there
}

// typing returns what tells the types of samples of p; nil where the recorder told them.
func (p *Profile) typing() *typing {
	if !p.Meta.Untyped {
		return nil
	}
	return &typing{p.Table, p.Table.blocked()}
}

// typeOf is the type that a sample of th is held to have.
func (t *typing) typeOf(th *Thread, s *Sample) SampleType {
	if t == nil || s.Type != SampleExternal || s.Stack == 0 || t.blocked[t.table.Method(t.table.Frame(s.Stack))] {
		return s.Type
	}
	i := sort.Search(len(th.Locked), func(i int) bool { return th.Locked[i].To > s.Time })
	if i < len(th.Locked) && th.Locked[i].From <= s.Time {
		return s.Type
	}
	return SampleManaged
}
