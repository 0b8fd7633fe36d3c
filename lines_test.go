package tracefix_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// Of the PDB that labPDB makes: the method of row r begins in line r*perRow, and its instruction
// i of IL stands i lines below.
const perRow = 1000

// labPDB makes a PDB for the module Lab of a trace, and returns for each method's row the offsets
// of IL that the runtime mapped.
func labPDB(t *testing.T, name string) (b []byte, mapped map[int]map[int]bool) {
	t.Helper()
	var id [16]byte
	var lab uint64
	rows := map[uint64]uint32{} // by method id
	owner := map[uint64]uint64{}
	ils := map[uint64][]uint32{}
	in, err := os.Open(name)
	require.NoError(t, err)
	defer in.Close()
	unpacked, err := zstd.NewReader(in)
	require.NoError(t, err)
	defer unpacked.Close()
	r, err := nettrace.NewReader(unpacked, nil)
	require.NoError(t, err)
	for ev, err := range r.All() {
		require.NoError(t, err)
		switch ev.Metadata.Role {
		case nettrace.RoleModuleDCStop, nettrace.RoleModuleLoad:
			var m nettrace.Module
			require.NoError(t, ev.Module(&m))
			if strings.HasSuffix(m.ILPath.String(), "/Lab.dll") && !m.ManagedPDB.IsZero() {
				id, lab = m.ManagedPDB, m.ModuleID
			}
		case nettrace.RoleMethodDCStop, nettrace.RoleMethodLoad:
			var m nettrace.Method
			require.NoError(t, ev.Method(&m))
			rows[m.MethodID], owner[m.MethodID] = m.Token&0xffffff, m.ModuleID
		case nettrace.RoleILMap:
			c := ev.Cursor()
			method := c.U64()
			c.U64()
			c.U8()
			for range c.U16() {
				ils[method] = append(ils[method], c.U32())
			}
		}
	}
	require.NotZero(t, lab)
	methods := map[uint32][]tracetest.PDBPoint{}
	mapped = map[int]map[int]bool{}
	for method, row := range rows {
		if owner[method] != lab || row == 0 {
			continue
		}
		for il := range perRow {
			methods[row] = append(methods[row], tracetest.PDBPoint{IL: uint32(il), Line: int(row)*perRow + il})
		}
		methods[row] = methods[row][:perRow]
		known := map[int]bool{0: true, perRow - 1: true} // prolog and epilog
		for _, il := range ils[method] {
			known[int(il)] = true
		}
		mapped[int(row)] = known
	}
	return tracetest.PDB(id, []string{"/src/Lab/Walk.cs"}, methods), mapped
}

// TestLines: the real maps of a recording, and a PDB that is made to fit it.
func TestLines(t *testing.T) {
	const name = "testdata/chain.nettrace.zst"
	f, err := tracefix.Open(context.Background(), name)
	require.NoError(t, err)
	defer f.Close()
	b, mapped := labPDB(t, name)
	beside, inside, other := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(beside, "Lab.pdb"), b, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(inside, "Lab.dll"), tracetest.DLL(b), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(other, "Lab.pdb"), tracetest.PDB([16]byte{1}, []string{"/wrong.cs"}, nil), 0o644))
	read := func(dir string) *profile.Profile {
		p, err := f.Profile(context.Background(), &tracefix.ReadOptions{Symbols: []string{dir}})
		require.NoError(t, err)
		return p
	}
	write := func(p *profile.Profile, format string) []byte {
		var out bytes.Buffer
		require.NoError(t, tracefix.Write(&out, p, format, nil))
		return out.Bytes()
	}
	p := read(beside)
	pb := write(p, "pprof")
	assert.Equal(t, pb, write(read(inside), "pprof"), "a PDB in the DLL tells the same")

	q := read(other)
	assert.Contains(t, strings.Join(q.Meta.Notes, "\n"), "Lab.pdb is of another build")
	assert.NotContains(t, string(write(q, "pprof")), "wrong.cs")

	pr, err := pprof.ParseData(pb)
	require.NoError(t, err)
	lines, calls := 0, map[string]map[int64]bool{}
	for _, l := range pr.Location {
		fn := l.Line[0].Function
		if !strings.HasPrefix(fn.Name, "Lab!") {
			assert.Empty(t, fn.Filename, fn.Name)
			continue
		}
		assert.Equal(t, "/src/Lab/Walk.cs", fn.Filename, fn.Name)
		row := fn.StartLine / perRow
		assert.Equal(t, row*perRow, fn.StartLine, fn.Name)
		if l.Line[0].Line == 0 {
			continue
		}
		lines++
		assert.Equal(t, row, l.Line[0].Line/perRow, "%s: the line of another method", fn.Name)
		assert.Contains(t, mapped[int(row)], int(l.Line[0].Line%perRow), fn.Name)
		if calls[fn.Name] == nil {
			calls[fn.Name] = map[int64]bool{}
		}
		calls[fn.Name][l.Line[0].Line] = true
	}
	assert.Greater(t, lines, 500)
	two := 0 // Gamma calls its next level from two places
	for name, at := range calls {
		if strings.Contains(name, "Gamma") && len(at) >= 2 {
			two++
		}
	}
	assert.Greater(t, two, 50, "two call sites of one method are two lines")

	var scope struct {
		Shared struct {
			Frames []struct {
				Name, File string
				Line       int
			}
		}
	}
	require.NoError(t, json.Unmarshal(write(p, "speedscope"), &scope))
	placed := 0
	for _, fr := range scope.Shared.Frames {
		if strings.HasPrefix(fr.Name, "Lab!") {
			placed++
			assert.Equal(t, "/src/Lab/Walk.cs", fr.File, fr.Name)
			assert.Zero(t, fr.Line%perRow, fr.Name)
		}
	}
	assert.NotZero(t, placed)

	var fox struct {
		Shared struct {
			FrameTable struct{ Line []*int }
			FuncTable  struct{ Source, LineNumber []*int }
			Sources    struct{ Filename []int }
			Strings    []string `json:"stringArray"`
		}
	}
	require.NoError(t, json.Unmarshal(write(p, "firefox"), &fox))
	require.Len(t, fox.Shared.Sources.Filename, 1)
	assert.Equal(t, "/src/Lab/Walk.cs", fox.Shared.Strings[fox.Shared.Sources.Filename[0]])
	some := 0
	for _, l := range fox.Shared.FrameTable.Line {
		if l != nil {
			some++
		}
	}
	distinct := 0 // which is what Firefox's frames are: addresses of one line are one
	for _, at := range calls {
		distinct += len(at)
	}
	assert.Equal(t, distinct, some)

	otlp, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(write(p, "otlp-profiles-alpha"))
	require.NoError(t, err)
	some = 0
	for _, l := range otlp.Dictionary().LocationTable().All() {
		for _, line := range l.Lines().All() {
			if line.Line() > 0 {
				some++
			}
		}
	}
	assert.Equal(t, lines, some)
}
