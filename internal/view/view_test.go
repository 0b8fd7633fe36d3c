package view

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"regexp"
	stdslices "slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/profile"
)

func TestPageHoldsTheProfile(t *testing.T) {
	tab := profile.NewTable()
	a := tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: "m", Name: "A<T>(\"</script>\")"})})
	b := tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: "m", Name: "B()"})})
	sa := tab.Push(0, a)
	sb := tab.Push(sa, b)
	th := &profile.Thread{Process: &profile.Process{PID: 4, Name: "app"}, TID: 9}
	th.Samples.Append(profile.Sample{Time: 1e6, Stack: sa})
	th.Samples.Append(profile.Sample{Time: 1.5e6, Stack: sa, Type: profile.SampleEvent})
	th.Samples.Append(profile.Sample{Time: 5e9, Stack: sb, Cut: profile.CutDepth, Type: profile.SampleExternal})
	th.Samples.Append(profile.Sample{Time: 5e9 + 10, Stack: sa, Cut: profile.CutDepth, Hidden: true})
	th.Samples.Append(profile.Sample{Time: 6e9 - 100, Dur: 100, Stack: sa, Type: profile.SampleOffCPU})
	th.Repairs.Append(profile.Repair{Index: 2, How: "bridge", Restored: 7, Above: 3, Confidence: 0.99})
	th.Repairs.Append(profile.Repair{Index: 3, How: "before", Restored: 50, Confidence: 0.99}) // of what is not shown
	p := &profile.Profile{Table: tab, Threads: []*profile.Thread{th}, Meta: profile.Meta{Source: "a<b>.nettrace", End: 6e9, Damages: 2}}
	p.Tracks = []*profile.Track{{Name: "GC", Group: "gc", Slices: slicesOf(
		&profile.Slice{Start: 5, Dur: 10, Name: "gen 1", Args: []profile.Arg{{Key: "reason", Value: "small"}, {Key: "n", Value: int64(3)}}},
		&profile.Slice{Start: 7, Name: "gen 2", Thread: th})}}

	var out bytes.Buffer
	require.NoError(t, Write(&out, p))
	s := out.String()
	assert.Contains(t, s, `content="default-src 'none'`, "the page asks no network")
	assert.NotContains(t, s, " src=")
	assert.Less(t, out.Len(), 110_000, "the program of the page")
	assert.Contains(t, s, "<title>a&lt;b&gt;.nettrace - tracefix</title>")

	var h head
	m := regexp.MustCompile(`(?s)class="head">(.*?)</script>`).FindStringSubmatch(s)
	require.NotNil(t, m)
	require.NoError(t, json.Unmarshal([]byte(m[1]), &h))
	assert.Equal(t, []string{"m!A<T>(\"</script>\")", "m!B()", profile.OffCPU}, h.Methods)
	assert.Contains(t, h.Facts, "0 of 1 cut repaired, 1 bridged, 7 frames restored")
	assert.Equal(t, 2, h.OffCPU)
	assert.Equal(t, []thread{{PID: 4, TID: 9, Process: "app", Samples: 3, Cut: 1, Repaired: 1, Busy: 1, Managed: 1}}, h.Threads)
	assert.Equal(t, []track{{Name: "GC", Group: "gc", Slices: 2}}, h.Tracks)
	assert.Equal(t, []string{"", "gen 1", "gen 2"}, h.Names)
	assert.Contains(t, s, `class="told">[1,`+"\n"+`"reason: small, n: 3"]</script>`)
	assert.Equal(t, []string{"bridge"}, h.Hows)

	ints := func(id string) []uint64 {
		m := regexp.MustCompile(`(?s)class="` + id + `">(.*?)</script>`).FindStringSubmatch(s)
		require.NotNil(t, m)
		b, err := base64.StdEncoding.DecodeString(m[1])
		require.NoError(t, err)
		var v []uint64
		for len(b) > 0 {
			u, n := binary.Uvarint(b)
			require.Positive(t, n)
			v = append(v, u)
			b = b[n:]
		}
		return v
	}
	assert.Equal(t, []uint64{1, 0, 1, 1, 2, 2}, ints("nodes"), "time off the CPU has a leaf of its own")
	assert.Equal(t, []uint64{1e6, 1e6, 1, 0, 5e9 - 2e6, 10, 2, 1 | 8 | 1<<6, 7, 3, 99, 0, 1e9 - 110, 100, 3, 3}, ints("samples"))
	assert.Equal(t, []uint64{5, 10, 1, 0, 1, 0, 2, 0, 2, 1, 0, 0}, ints("slices"))
	assert.Equal(t, []string{"The file is damaged in 2 places. This page shows what could be saved."}, h.Notes)
}

func slicesOf(list ...*profile.Slice) iter.Seq[*profile.Slice] { return stdslices.Values(list) }

// What is noted of slices comes back in order, from memory and from disk, wherever pieces end.
func TestNoted(t *testing.T) {
	for _, aside := range []*spool.Spool{nil, input.Aside(1)} {
		r := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{0, 1, 50_000, 3_000_000} {
			s := &sliceTable{told: spool.LogIn(aside, toldMemory)}
			values := make([]uint64, n)
			for i := range values {
				values[i] = r.Uint64() >> (r.UintN(8) * 8)
				s.note(values[i])
			}
			next := s.noted()
			for i, want := range values {
				if v, ok := next(); !ok || v != want {
					t.Fatalf("number %d of %d is %d, want %d", i, n, v, want)
				}
			}
			_, ok := next()
			require.False(t, ok)
		}
	}
}
