package load

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/load/pdb"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

const (
	ilMapEvent   = 190
	ilMapRundown = 150
)

// mapPayload is a MethodILToNativeMap event: pairs of an offset of IL and one of code.
func mapPayload(method uint64, extent byte, pairs ...[2]uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, method)
	b = append(binary.LittleEndian.AppendUint64(b, 0), extent)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(pairs)))
	for column := range 2 {
		for _, p := range pairs {
			b = binary.LittleEndian.AppendUint32(b, p[column])
		}
	}
	return append(b, 0, 0)
}

// withPDB is the payload of a module event, version 2.
func withPDB(module []byte, id pdb.GUID, path string) []byte {
	b := append(module, id[:]...)
	return utf16z(binary.LittleEndian.AppendUint32(b, 1), path)
}

func TestLinesOfCode(t *testing.T) {
	id := pdb.GUID{1, 2, 3}
	points := []tracetest.PDBPoint{{IL: 0, Line: 10}, {IL: 4, Line: 11}, {IL: 9, Line: 15}}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Lab.pdb"), tracetest.PDB(id, []string{"Lab.cs"}, map[uint32][]tracetest.PDBPoint{1: points}), 0o644))
	const jit, cold, dynamic = 0x8, 0x8 | 1<<28, 0x8 | 1
	module := func() []byte {
		return withPDB(modulePayload(1, "/srv/lab/bin/Lab.dll", ""), id, "/obj/Lab.pdb")
	}
	method := func(start uint64, flags uint32) []byte {
		return methodPayload(10, 1, start, 0x100, flags, "Lab.A", "Run", "void  ()")
	}
	// As the just-in-time compiler writes it: an epilog in the middle, two that begin at one place.
	code := mapPayload(10, 0, [2]uint32{ilProlog, 0}, [2]uint32{0, 8}, [2]uint32{9, 64}, [2]uint32{4, 32}, [2]uint32{ilUnknown, 32}, [2]uint32{ilEpilog, 80}, [2]uint32{ilUnknown, 96})
	tests := []struct {
		name  string
		steps []step
		lines map[uint64]int // by address; 0: only the method's beginning is known; -1: nothing
	}{
		{"loaded: its map comes behind it", []step{ev(0, moduleLoad, module()), ev(1, load, method(0x1000, jit)), ev(1, ilMapEvent, code)}, map[uint64]int{
			0x1000: 10, 0x1004: 10, 0x1009: 10, 0x1020: 10, 0x1021: 11, 0x1040: 11, 0x1041: 15, 0x1051: 15, 0x1061: 0, 0x10ff: 0,
		}},
		{"rundown: its map comes before it, its module last", []step{
			rundown(8, ilMapRundown, code), rundown(8, dcStop, method(0x1000, jit)), rundown(9, moduleDCStop, module()),
		}, map[uint64]int{0x1021: 11}},
		{"two tiers, each with its map", []step{
			ev(0, moduleLoad, module()), ev(1, load, method(0x1000, jit)), ev(1, ilMapEvent, code),
			ev(2, load, method(0x2000, jit)), ev(2, ilMapEvent, mapPayload(10, 0, [2]uint32{9, 0})),
		}, map[uint64]int{0x1021: 11, 0x2021: 15}},
		{"without a map", []step{ev(0, moduleLoad, module()), ev(1, load, method(0x1000, jit))}, map[uint64]int{0x1021: 0}},
		{"the map of another method", []step{
			ev(0, moduleLoad, module()), ev(1, load, method(0x1000, jit)), ev(1, ilMapEvent, mapPayload(11, 0, [2]uint32{4, 0})),
		}, map[uint64]int{0x1021: 0}},
		{"cold code", []step{
			ev(0, moduleLoad, module()), ev(1, load, method(0x1000, jit)), ev(1, load, method(0x9000, cold)), ev(1, ilMapEvent, code), ev(1, ilMapEvent, mapPayload(10, 1, [2]uint32{9, 0})),
		}, map[uint64]int{0x1021: 11, 0x9021: -1}},
		{"made at run time", []step{ev(0, moduleLoad, module()), ev(1, load, method(0x1000, dynamic)), ev(1, ilMapEvent, code)}, map[uint64]int{0x1021: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table := profile.NewTable()
			p := newSymbols(table, ByTime, newImages([]string{dir}))
			for _, s := range tt.steps {
				provider := runtimes
				if s.rundown {
					provider = rundowns
				}
				e := event(provider, s.id, s.payload)
				e.Version = 2
				require.NoError(t, p.Event(e, s.at))
			}
			frames := map[uint64]profile.FrameID{}
			for addr := range tt.lines {
				frames[addr] = p.Frame(addr, 5)
			}
			p.Finish(nil)
			for addr, line := range tt.lines {
				f := frames[addr]
				begin := profile.Place{File: "Lab.cs", Line: 10}
				if line < 0 {
					line = 0
				}
				assert.Equal(t, line, table.PlaceOf(f).Line, "%#x", addr)
				if table.PlaceOf(f).Line > 0 {
					assert.Equal(t, begin, table.BeginOf(table.Method(f)), "%#x", addr)
				}
			}
		})
	}
	t.Run("a map that ends early", func(t *testing.T) {
		p := newSymbols(profile.NewTable(), ByTime, newImages([]string{dir}))
		for cut := range code {
			e := event(runtimes, ilMapEvent, code[:cut])
			if cut < len(code)-2 {
				assert.Error(t, p.Event(e, 0), cut)
			}
		}
	})
	assert.Nil(t, newLines(ByTime, newImages([]string{t.TempDir()})), "nothing is kept where there is no PDB")
	assert.Equal(t, nettrace.RoleILMap, event(rundowns, ilMapRundown, nil).Metadata.Role)
}
