package load

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Event ids; those of the rundown are marked.
const (
	load         = 143
	unload       = 144
	dcStart      = 143 // rundown
	dcStop       = 144 // rundown
	moduleLoad   = 152
	moduleDCStop = 154 // rundown
)

// event is an event of the runtime, its rundown or Universal.System.
func event(provider string, id int, payload []byte) *nettrace.Event {
	m := &nettrace.Metadata{Provider: provider, EventID: id}
	m.Classify()
	return &nettrace.Event{Metadata: m, Payload: payload}
}

const (
	runtimes = nettrace.ProviderRuntime
	rundowns = nettrace.ProviderRuntime + "Rundown"
	systems  = "Universal.System"
)

func mapped(payload []byte) *nettrace.Event       { return event(systems, 3, payload) }
func symbolEvents(payload []byte) *nettrace.Event { return event(systems, 4, payload) }
func image(payload []byte) *nettrace.Event        { return event(systems, 5, payload) }

func utf16z(b []byte, s string) []byte {
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return append(b, 0, 0)
}

// methodPayload is a verbose method event, version 2.
func methodPayload(id, module, start uint64, size, flags uint32, ns, name, sig string) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint64(b, id)
	b = binary.LittleEndian.AppendUint64(b, module)
	b = binary.LittleEndian.AppendUint64(b, start)
	b = binary.LittleEndian.AppendUint32(b, size)
	b = binary.LittleEndian.AppendUint32(b, 0x06000001)
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = utf16z(utf16z(utf16z(b, ns), name), sig)
	return append(b, make([]byte, 10)...)
}

func modulePayload(id uint64, il, native string) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint64(b, id)
	b = binary.LittleEndian.AppendUint64(b, 1)
	b = binary.LittleEndian.AppendUint64(b, 0)
	return append(utf16z(utf16z(b, il), native), 0, 0)
}

// A step of a test: an event, or an address that is seen and what it must be called.
type step struct {
	at      int64
	rundown bool
	id      int
	payload []byte
	addr    uint64
	byTime  string // name by our rules
	ref     string // name by the reference's rules
}

func ev(at int64, id int, payload []byte) step { return step{at: at, id: id, payload: payload} }
func rundown(at int64, id int, payload []byte) step {
	return step{at: at, rundown: true, id: id, payload: payload}
}
func see(at int64, addr uint64, byTime, ref string) step {
	return step{at: at, addr: addr, byTime: byTime, ref: ref}
}

func TestNames(t *testing.T) {
	const jit, r2r = 0x8, 0
	lab := modulePayload(1, "/srv/lab/bin/Lab.dll", "")
	a := func(start uint64, flags uint32) []byte {
		return methodPayload(10, 1, start, 0x100, flags, "Lab.A", "Run", "instance void  (int32,class System.String)")
	}
	b := func(start uint64, flags uint32) []byte {
		return methodPayload(11, 1, start, 0x100, flags, "Lab.B", "Walk", "void  ()")
	}
	const aName, bName = "Lab!Lab.A.Run(int32,class System.String)", "Lab!Lab.B.Walk()"
	tests := []struct {
		name  string
		steps []step
	}{
		{"rundown at the end names what was seen before", []step{
			see(1, 0x1010, aName, aName), see(2, 0x10ff, aName, aName),
			see(3, 0x1100, "?!0x1100", "?!?"), see(3, 0xfff, "?!0xfff", "?!?"),
			rundown(9, dcStop, a(0x1000, r2r)), rundown(9, moduleDCStop, lab),
		}},
		{"a load names what is jitted only, by the reference's rules", []step{
			ev(0, moduleLoad, lab), ev(1, load, a(0x1000, jit)), ev(1, load, b(0x2000, r2r)),
			see(2, 0x1010, aName, aName), see(2, 0x2010, bName, "?!?"),
		}},
		{"several ranges of one method", []step{
			ev(0, moduleLoad, lab), ev(1, load, a(0x1000, jit)), ev(1, load, a(0x5000, jit|5<<7)), ev(1, load, a(0x9000, jit|1<<28)),
			see(2, 0x1010, aName, aName), see(2, 0x5010, aName, aName), see(2, 0x9010, aName, aName),
		}},
		{"an address is used again after an unload", []step{
			ev(0, moduleLoad, lab), ev(1, load, a(0x1000, jit)), see(2, 0x1010, aName, aName),
			ev(3, unload, a(0x1000, jit)), ev(4, load, b(0x1000, jit)), see(5, 0x1010, bName, bName),
			rundown(9, dcStop, b(0x1000, jit)),
		}},
		{"without an unload the reference names all by the first load", []step{
			ev(0, moduleLoad, lab), ev(1, load, a(0x1000, jit)), see(2, 0x1010, aName, aName),
			ev(4, load, b(0x1000, jit)), see(5, 0x1010, bName, aName),
		}},
		{"or by the rundown", []step{
			ev(0, moduleLoad, lab), ev(1, load, a(0x1000, jit)), see(2, 0x1010, aName, bName),
			ev(4, load, b(0x1000, jit)), see(5, 0x1010, bName, bName),
			rundown(9, dcStop, b(0x1000, jit)),
		}},
		{"a sample just before its load event", []step{
			ev(0, moduleLoad, lab), see(1, 0x1010, aName, aName), ev(2, load, a(0x1000, jit)),
		}},
		{"start rundown", []step{
			rundown(0, moduleDCStop, lab), rundown(0, dcStart, a(0x1000, jit)), see(1, 0x1020, aName, aName),
		}},
		{"a module without events", []step{
			ev(1, load, a(0x1000, jit)), see(2, 0x1010, "ManagedModule!Lab.A.Run(int32,class System.String)", "ManagedModule!Lab.A.Run(int32,class System.String)"),
		}},
		{"dynamic methods, odd names, no signature", []step{
			ev(0, moduleLoad, modulePayload(7, "", "")),
			ev(1, load, methodPayload(1, 7, 0x1000, 16, 0x9, "dynamicClass", `say "hé\" 𝄞`, "(")),
			ev(1, load, methodPayload(2, 7, 0x2000, 16, 0x9, "", "Stub", "int32")),
			see(2, 0x1001, `!dynamicClass.say "hé\" 𝄞(`, `!dynamicClass.say "hé\" 𝄞(`),
			see(2, 0x2001, "!.Stub", "!.Stub"),
		}},
		{"native images of old runtimes", []step{
			ev(0, moduleLoad, modulePayload(1, `C:\x\System.Core.ni.DLL`, `C:\x\System.Core.ni.DLL`)),
			ev(1, load, a(0x1000, jit)),
			see(2, 0x1010, "System.Core!Lab.A.Run(int32,class System.String)", "System.Core!Lab.A.Run(int32,class System.String)"),
		}},
		{"the highest addresses do not wrap around", []step{
			ev(0, moduleLoad, lab), ev(1, load, a(^uint64(0)-0x10, jit)), see(2, 5, "?!0x5", "?!?"), see(2, ^uint64(0), "?!0xffffffffffffffff", aName),
		}},
	}
	for _, tt := range tests {
		for _, rules := range []Rules{ByTime, Reference} {
			t.Run(tt.name, func(t *testing.T) {
				tab := profile.NewTable()
				p := newSymbols(tab, rules, nil)
				got := make([]profile.FrameID, len(tt.steps))
				for i, s := range tt.steps {
					if s.payload == nil {
						got[i] = p.Frame(s.addr, s.at)
						continue
					}
					require.NoError(t, p.Event(event(map[bool]string{false: runtimes, true: rundowns}[s.rundown], s.id, s.payload), s.at))
				}
				p.Finish(nil)
				for i, s := range tt.steps {
					if s.payload != nil {
						continue
					}
					want := s.byTime
					if rules == Reference {
						want = s.ref
					}
					assert.Equal(t, want, tab.MethodOf(got[i]).Full(), "rules %d, address %#x at %d", rules, s.addr, s.at)
					assert.Equal(t, s.addr, tab.FrameAt(got[i]).Addr)
				}
			})
		}
	}
}

func str16(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

func mappingPayload(id, start, end, off uint64, file string, meta uint64) []byte {
	var b []byte
	for _, v := range []uint64{id, start, end, off} {
		b = binary.AppendUvarint(b, v)
	}
	b = str16(b, file)
	b = binary.AppendUvarint(b, meta)
	return append(b, 0, 0, 0, 0)
}

func symbolPayload(mapping, start, end uint64, name string) []byte {
	var b []byte
	for _, v := range []uint64{1, mapping, start, end} {
		b = binary.AppendUvarint(b, v)
	}
	return str16(b, name)
}

func TestNativeNames(t *testing.T) {
	images := newImages(nil)
	require.NoError(t, images.Add(image(append(str16(binary.AppendUvarint(nil, 3), `{"type":"ELF","p_vaddr":"0x7190","p_offset":"0x6190"}`), 0, 0))))
	require.NoError(t, images.Add(image(append(str16(binary.AppendUvarint(nil, 4), `not json`), 0, 0))))
	for _, rules := range []Rules{ByTime, Reference} {
		tab := profile.NewTable()
		p := newSymbols(tab, rules, images)
		for _, m := range [][]byte{
			mappingPayload(0, 0x10000, 0x12000, 0x1000, "/usr/lib/libc.so.6", 0),
			mappingPayload(1, 0x20000, 0x21fff, 0x6000, "/usr/share/dotnet/libcoreclr.so", 3),
			mappingPayload(2, 0x30000, 0x40000, 0, "/memfd:doublemapper (deleted)", 0),
			mappingPayload(5, 0x38000, 0x38fff, 0, "/memfd:doublemapper (deleted)", 0),
			mappingPayload(3, 0x50000, 0x60000, 0, "", 0),
			mappingPayload(4, 0xffff800000000000, ^uint64(0), 0, "vmlinux", 0),
			mappingPayload(6, 0x70000, 0x80000, 0x200, "/app/System.Private.CoreLib.dll", 4),
			mappingPayload(8, 0x90000, 0x91000, 0, "/usr/share/dotnet/System.Linq.dll (deleted)", 0),
			mappingPayload(7, 0x7ff000, 0x800000, 0, "[stack]", 0),
		} {
			require.NoError(t, p.Event(mapped(m), 0))
		}
		for _, s := range [][]byte{
			symbolPayload(0, 0x10100, 0x101ff, "__clone3"),
			symbolPayload(0, 0x10200, 0x102ff, "write"), symbolPayload(0, 0x10200, 0x102ff, "__write"),
			symbolPayload(2, 0x38000, 0x380ff, "int64 [Lab] Lab.Beta::F039(class Lab.Walk)[QuickJitted]"),
			symbolPayload(5, 0x38000, 0x380ff, "int64 [Lab] Lab.Beta::F039(class Lab.Walk)[QuickJitted]"),
			symbolPayload(2, 0x38100, 0x381ff, "class System.String[] [Lab.Core] Lab.Arr`1[System.Int32]::Get(int32[])[OptimizedTier1]"),
			symbolPayload(2, 0x38200, 0x382ff, "stub InitThread<x>"),
			symbolPayload(2, 0x38300, 0x383ff, "valuetype Grid.V[0...,0...,0...][] [Lab] Grid.Program::Three(int32[0...,0...],int32)[MinOptJitted]"),
			symbolPayload(2, 0x38400, 0x384ff, "instance !0[0...,0...] [7] Grid.G`1[System.Int64]::Make(int32,!0)[OptimizedTier1]"),
			symbolPayload(4, 0xffffffff81000000, 0xffffffff810000ff, "ret_from_fork_asm"),
			symbolPayload(4, 0xffffffff81000100, 0xffffffff810001ff, "entry_SYSCALL_64_after_hwframe"),
			symbolPayload(4, 0, ^uint64(0), "hidden"),
		} {
			require.NoError(t, p.Event(symbolEvents(s), 0))
		}
		classes := map[profile.FrameID]Class{}
		type want struct {
			addr        uint64
			byTime, ref string
			class       Class
		}
		wants := []want{
			{0x101ff, "libc.so.6!__clone3", "libc.so.6!__clone3", Root},
			{0x10210, "libc.so.6!write", "libc.so.6!write", 0},
			{0x10300, "libc.so.6!0x1300", "libc.so.6!?", 0},
			{0x11fff, "libc.so.6!0x2fff", "libc.so.6!?", 0},
			{0x12000, "?!0x12000", "?!?", Garbage},                  // exclusive end
			{0x21fff, "libcoreclr.so!0x8fff", "libcoreclr.so!?", 0}, // inclusive end; a virtual address
			{0x38010, "lab!Lab.Beta::F039(class Lab.Walk)", "lab!Lab.Beta::F039(class Lab.Walk)", JIT},
			{0x38110, "lab.core!Lab.Arr`1[System.Int32]::Get(int32[])", "lab.core!Lab.Arr`1[System.Int32]::Get(int32[])", JIT},
			{0x38210, "unknown!stub InitThread<x>", "unknown!stub InitThread<x>", JIT},
			{0x38310, "lab!Grid.Program::Three(int32[0...,0...],int32)", "lab!Grid.Program::Three(int32[0...,0...],int32)", JIT},
			{0x38410, "7!Grid.G`1[System.Int64]::Make(int32,!0)", "7!Grid.G`1[System.Int64]::Make(int32,!0)", JIT},
			{0x39000, "?!0x39000", "?!?", JIT},
			{0x55555, "?!0x55555", "!?", Garbage},
			{0x70000, "system.private.corelib!0x200", "system.private.corelib!?", 0},
			{0x90010, "system.linq!0x10", "system.linq!?", 0},
			{0x7ff100, "[stack]!0x7ff100", "[stack]!?", Garbage},
			{0xffffffff81000010, "vmlinux!ret_from_fork_asm", "vmlinux!ret_from_fork_asm", InKernel | Root},
			{0xffffffff81000110, "vmlinux!entry_SYSCALL_64_after_hwframe", "vmlinux!entry_SYSCALL_64_after_hwframe", InKernel | Entry},
			{0xffffffff82000000, "vmlinux!0xffffffff82000000", "vmlinux!?", InKernel},
			{0, "?!0x0", "?!?", Garbage},
		}
		var fs []profile.FrameID
		for _, w := range wants {
			fs = append(fs, p.Frame(w.addr, 1))
		}
		p.Finish(func(f profile.FrameID, c Class) { classes[f] = c })
		for i, w := range wants {
			name := w.byTime
			if rules == Reference {
				name = w.ref
			}
			assert.Equal(t, name, tab.MethodOf(fs[i]).Full(), "rules %d, address %#x", rules, w.addr)
			assert.Equal(t, w.class, classes[fs[i]], "%#x", w.addr)
		}
	}
}

// Mappings and symbols that came later do not name what was seen before.
func TestNativeNamesByTime(t *testing.T) {
	tab := profile.NewTable()
	p := newSymbols(tab, ByTime, nil)
	require.NoError(t, p.Event(mapped(mappingPayload(0, 0x1000, 0x2000, 0, "/lib/old.so", 0)), 0))
	before := p.Frame(0x1800, 5)
	require.NoError(t, p.Event(mapped(mappingPayload(1, 0x1000, 0x2000, 0, "/lib/new.so", 0)), 10))
	after := p.Frame(0x1900, 15)
	p.Finish(nil)
	assert.Equal(t, "old.so!0x800", tab.MethodOf(before).Full())
	assert.Equal(t, "new.so!0x900", tab.MethodOf(after).Full())
}

func TestShortPayloads(t *testing.T) {
	full := methodPayload(10, 1, 0x1000, 0x100, 8, "Lab.A", "Run", "void ()")
	for n := range len(full) - 10 {
		p := newSymbols(profile.NewTable(), ByTime, nil)
		assert.Error(t, p.Event(event(runtimes, load, full[:n]), 0), "%d bytes", n)
	}
	m := mappingPayload(1, 0x20000, 0x21fff, 0x6000, "/lib/x.so", 3)
	for n := range len(m) - 4 {
		p := newSymbols(profile.NewTable(), ByTime, nil)
		assert.Error(t, p.Event(mapped(m[:n]), 0), "%d bytes", n)
	}
	s := symbolPayload(0, 0x10100, 0x101ff, "__clone3")
	for n := range len(s) {
		p := newSymbols(profile.NewTable(), ByTime, nil)
		assert.Error(t, p.Event(symbolEvents(s[:n]), 0), "%d bytes", n)
	}
}

// Whatever the events say, every address keeps its frame and gets a name.
func FuzzProcess(f *testing.F) {
	f.Add(uint8(0), 143, methodPayload(10, 1, 0x1000, 0x100, 8, "Lab.A", "Run", "void ()"), uint64(0x1010))
	f.Add(uint8(0), 144, methodPayload(10, 1, 0x1000, 0xffffffff, 8, "Lab.A", "Run", "void ()"), uint64(0x1010))
	f.Add(uint8(1), 144, methodPayload(10, 1, 0x1000, 0x100, 0, "Lab.A", "Run", "void ()"), uint64(0x1010))
	f.Add(uint8(0), 152, modulePayload(1, "/a/b.dll", ""), uint64(0))
	f.Add(uint8(2), 0, mappingPayload(1, 0x20000, 0x21fff, 0x6000, "/lib/x.so", 3), uint64(0x20001))
	f.Add(uint8(3), 0, symbolPayload(0, 0x10100, 0x101ff, "int64 [Lab] A::B()[Tier]"), uint64(0x10101))
	f.Fuzz(func(t *testing.T, kind uint8, id int, payload []byte, addr uint64) {
		for _, rules := range []Rules{ByTime, Reference} {
			tab := profile.NewTable()
			p := newSymbols(tab, rules, nil)
			first := p.Frame(addr, 1)
			for now := range int64(3) {
				switch kind % 5 {
				case 0:
					_ = p.Event(event(runtimes, id, payload), now)
				case 1:
					_ = p.Event(event(rundowns, id, payload), now)
				case 2:
					_ = p.Event(mapped(payload), now)
				case 3:
					_ = p.Event(symbolEvents(payload), now)
				case 4:
					_ = newImages(nil).Add(image(payload))
				}
			}
			again := p.Frame(addr, 5)
			p.Finish(nil)
			for _, fr := range []profile.FrameID{first, again} {
				if tab.FrameAt(fr).Addr != addr || tab.MethodOf(fr).Full() == "" {
					t.Fatalf("frame of %#x: %+v %q", addr, tab.FrameAt(fr), tab.MethodOf(fr).Full())
				}
			}
		}
	})
}

// TestNativeNamesOfFiles: a file with the symbols of a mapping names its functions if it is the
// same build, and never if it is not.
func TestNativeNamesOfFiles(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	exe, err := os.Open(self)
	require.NoError(t, err)
	defer exe.Close()
	size, err := exe.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	file, err := readELF(exe, size)
	if err != nil || file.BuildID == "" {
		t.Skip("skipped: this test binary is no ELF file with a build id: ", err)
	}
	f, err := elf.NewFile(exe)
	require.NoError(t, err)
	text := f.Section(".text")
	function := "" // of some address
	at := text.Addr
	for ; function == "" && at < text.Addr+text.Size; at += 64 {
		function, _ = file.Lookup(at)
	}
	at -= 64
	require.NotEmpty(t, function)
	other := "00" + file.BuildID[2:]
	if other == file.BuildID { // one build in 256
		other = "01" + file.BuildID[2:]
	}
	for _, mark := range []string{"", " (deleted)"} {
		for id, want := range map[string]string{file.BuildID: function, other: ""} {
			images := newImages([]string{filepath.Dir(self)})
			meta := fmt.Sprintf(`{"type":"ELF","build_id":%q,"p_vaddr":"%#x","p_offset":"%#x"}`, id, text.Addr, text.Offset)
			require.NoError(t, images.Add(image(append(str16(binary.AppendUvarint(nil, 3), meta), 0, 0))))
			for _, rules := range []Rules{ByTime, Reference} {
				tab := profile.NewTable()
				p := newSymbols(tab, rules, images)
				require.NoError(t, p.Event(mapped(mappingPayload(0, 0x10000000, 0x10000000+text.Size, text.Offset, "/app/"+filepath.Base(self)+mark, 3)), 0))
				frame := p.Frame(0x10000000+at-text.Addr, 0)
				p.Finish(nil)
				m := tab.MethodOf(frame)
				if rules == Reference || want == "" {
					assert.Equal(t, profile.Unresolved, m.Kind, "%+v", m)
					continue
				}
				assert.Equal(t, profile.Native, m.Kind)
				assert.Equal(t, want, m.Name)
			}
		}
	}
}

// TestClip: code that reaches over other code has a size that is none, if both were there at one time. Methods of
// which only the end is told, as those of DynamicMethod in a recording without their loads, came and went in one place.
func TestClip(t *testing.T) {
	const ever, never = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		name     string
		from, to int64 // of the large one
		of       func(i int) (from, to int64)
		reported bool
	}{
		{"all there to the end", ever, never, func(int) (int64, int64) { return ever, never }, true},
		{"the others were there before, and stayed", 50, 90, func(int) (int64, int64) { return 10, never }, true},
		{"the others came later", 50, 90, func(int) (int64, int64) { return 60, never }, false},
		{"the others had gone", 50, 90, func(int) (int64, int64) { return 10, 40 }, false},
		{"only ends are told", ever, 90, func(i int) (int64, int64) { return ever, int64(100 + i) }, false},
		{"it went, the others are there at the end", ever, 90, func(int) (int64, int64) { return ever, never }, false},
	} {
		list := []span{{1000, 9999, c.from, c.to, 0}}
		for i := range 2 * maxReplaced {
			from, to := c.of(i)
			first := uint64(2000 + 100*i)
			list = append(list, span{first, first + 49, from, to, int32(i + 1)})
		}
		var reported []int32
		clip(list, func(id int32, last uint64) {
			reported = append(reported, id)
			assert.Equal(t, uint64(1999), last)
		})
		if c.reported {
			assert.Equal(t, []int32{0}, reported, c.name)
		} else {
			assert.Empty(t, reported, c.name)
		}
	}
}
