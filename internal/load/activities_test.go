package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/spool"
	"github.com/tracefix/tracefix/nettrace"
)

// Activities that do not fit into memory are drawn as those that do: of two processes, nested, side by side, with ends that
// are lost, and many that begin at one time.
func TestActivitiesOnDisk(t *testing.T) {
	draw := func(file *os.File) (slices []string) {
		l := newLoader(&Options{Tracks: []string{"activities"}})
		a := newActivities(newTracker(context.Background(), l, nil))
		a.k.aside.Create = nil
		if file != nil {
			a.k.aside.Create = func() (spool.File, error) { return file, nil }
		}
		start := &nettrace.Metadata{Provider: "Other", EventID: 1, Name: "WorkStart", Opcode: 1}
		stop := &nettrace.Metadata{Provider: "Other", EventID: 2, Name: "WorkStop", Opcode: 2}
		r := rand.New(rand.NewPCG(1, 2))
		var open [2][][]uint32
		id := func(p int, path []uint32) [16]byte {
			id, err := activity.Encode(activity.NewPath(path...).WithProcess(uint32(p+1)), activity.EncoderOld)
			require.NoError(t, err)
			return id
		}
		for i := range 130_000 {
			p := r.IntN(2)
			path := []uint32{1, uint32(i + 1)}
			ev := &nettrace.Event{Metadata: start, Opcode: 1, Version: 1, Payload: binary.LittleEndian.AppendUint32(nil, uint32(i))}
			if n := len(open[p]); n > 0 && r.IntN(3) > 0 {
				if up := open[p][r.IntN(n)]; len(up) < 6 {
					path = append(append([]uint32{}, up...), uint32(i%14+1))
					ev.RelatedActivityID = id(p, up)
				}
			}
			now, th := int64(i/3), l.threadOf(p+1, uint64(10*p+r.IntN(3)))
			ev.ActivityID = id(p, path)
			a.event(ev, now, th)
			open[p] = append(open[p], path)
			for len(open[p]) > 0 && r.IntN(100) < 49 || len(open[p]) > 100 {
				k := r.IntN(len(open[p]))
				if r.IntN(50) > 0 {
					a.event(&nettrace.Event{Metadata: stop, Opcode: 2, ActivityID: id(p, open[p][k])}, now, th)
				}
				open[p] = append(open[p][:k], open[p][k+1:]...)
			}
		}
		a.arrange(1 << 20)
		require.Len(t, a.tracks, 2)
		for _, tr := range a.tracks {
			last := int64(0)
			for s := range tr.Slices {
				require.GreaterOrEqual(t, s.Start, last)
				last = s.Start
				slices = append(slices, fmt.Sprintf("%+v", *s))
			}
			require.NoError(t, tr.Err())
		}
		return slices
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	want, got := draw(nil), draw(file)
	require.Len(t, want, 130_000)
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
	info, err := file.Stat()
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(5e6), "much of it was on disk")
}
