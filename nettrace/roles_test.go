package nettrace

import (
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The events of a module of an application domain have that domain before the flags; those of a
// rundown are numbered otherwise than the others.
func TestModule(t *testing.T) {
	text := func(s string) (b []byte) {
		for _, u := range utf16.Encode([]rune(s + "\x00")) {
			b = le16(b, u)
		}
		return b
	}
	payload := func(domain, pdb bool) []byte {
		b := le64(le64(nil, 1), 2)
		if domain {
			b = le64(b, 3)
		}
		b = append(append(le32(le32(b, uint32(ModuleManifest)), 0), text("il.dll")...), text("ni.dll")...)
		b = le16(b, 7) // ClrInstanceID
		if pdb {
			b = append(le32(append(b, 1, 0, 0, 0, 2, 0, 3, 0, 4, 5, 6, 7, 8, 9, 10, 11), 12), text("il.pdb")...)
		}
		return b
	}
	for _, c := range []struct {
		id      int
		source  Source
		version int
		domain  uint64
	}{
		{151, SourceRuntime, 1, 3}, // DomainModuleLoad
		{152, SourceRuntime, 1, 0}, // ModuleLoad
		{152, SourceRuntime, 2, 0},
		{151, SourceRundown, 1, 3}, // DomainModuleDCStart
		{152, SourceRundown, 1, 3}, // DomainModuleDCEnd
		{154, SourceRundown, 2, 0}, // ModuleDCEnd
	} {
		ev := Event{Version: c.version, Metadata: &Metadata{EventID: c.id, Source: c.source}, Payload: payload(c.domain != 0, c.version >= 2)}
		var m Module
		require.NoError(t, ev.Module(&m), c)
		assert.Equal(t, []uint64{1, 2, c.domain}, []uint64{m.ModuleID, m.AssemblyID, m.AppDomainID}, c)
		assert.Equal(t, ModuleManifest, m.Flags, c)
		assert.Equal(t, []string{"il.dll", "ni.dll"}, []string{m.ILPath.String(), m.NativePath.String()}, c)
		want := ""
		if c.version >= 2 {
			want = "il.pdb"
			assert.Equal(t, uint32(12), m.ManagedPDBAge, c)
		}
		assert.Equal(t, want, m.ManagedPDBPath.String(), c)
		ev.Payload = ev.Payload[:20]
		assert.Error(t, ev.Module(&m), "%v: cut", c)
	}
}
