package requests

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/causality"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// TestIDsOfEveryRuntime holds that ids alone, in the order of their events, tell how each of them
// is to be read: as the version of the runtime says, of .NET Core 3.1 to 10, and as all that show
// paths read them.
func TestIDsOfEveryRuntime(t *testing.T) {
	// Some recordings end without what tells the version.
	untold := map[string]string{"net31-": "3.1", "net6-": "6.0", "net80rtm-": "8.0"}
	files, err := filepath.Glob(filepath.Join(tracetest.Corpus(t, "dotnet10"), "*.nettrace"))
	require.NoError(t, err)
	versions, both := map[int]bool{}, 0
	for _, name := range files {
		in := open(t, name)
		if in.Kind != input.Nettrace {
			continue
		}
		var origin input.Origin
		var ids []activity.ID
		engine := causality.NewEngine(&causality.Options{Tree: &stacks.Tree{}, Segment: func(*causality.Segment) {}})
		started := map[activity.ID]bool{}
		_, err := Read(context.Background(), in, func(*nettrace.Reader) {}, func(ev *nettrace.Event) {
			require.NoError(t, origin.Event(ev))
			for _, id := range []nettrace.GUID{ev.RelatedActivityID, ev.ActivityID} {
				if !id.IsZero() {
					ids = append(ids, activity.ID(id))
				}
			}
			if ev.Opcode == 1 && !ev.ActivityID.IsZero() && !nettrace.OfRuntime(ev.Metadata.Provider) {
				started[activity.ID(ev.ActivityID)] = true
				engine.Add(&causality.Event{
					Kind: causality.Start, Time: ev.Time, Process: uint32(ev.ProcessID), Thread: ev.ThreadID,
					ID: activity.ID(ev.ActivityID), Related: activity.ID(ev.RelatedActivityID), HasID: true,
				})
			}
		})
		require.NoError(t, err, name)
		_, version := origin.Told()
		for prefix, v := range untold {
			if version == "" && strings.HasPrefix(filepath.Base(name), prefix) {
				version = v
			}
		}
		if version == "" || len(ids) == 0 {
			continue
		}
		first, _, _ := strings.Cut(version, ".")
		major, err := strconv.Atoi(first)
		require.NoError(t, err, name)
		versions[major] = true
		var d activity.Decoder
		var scan httpphases.Event
		var scanned activity.Decoder
		for _, id := range ids {
			want, ok := activity.Decode(id, major == 10)
			got, gotOK := d.Decode(id)
			require.Equal(t, ok, gotOK, "%s: %s", name, id)
			require.Equal(t, want.String(), got.String(), "%s: %s", name, id)
			scan.ID, scan.PathLen = id, 0
			setPath(&scanned, &scan)
			require.Equal(t, len(want.Numbers()), int(scan.PathLen), name)
			if otherwise, _ := activity.Decode(id, major != 10); otherwise.String() != want.String() {
				both++
			}
		}
		rows, _, err := Activities(context.Background(), in, nil)
		require.NoError(t, err)
		of := engine.IDs()
		for _, r := range rows.All() {
			if r.ID.IsZero() {
				continue
			}
			want, ok := activity.Decode(r.ID, major == 10)
			got, gotOK := rows.Path(r)
			require.Equal(t, ok, gotOK, "%s: %s", name, r.ID)
			require.Equal(t, want.String(), got.String(), "%s: %s", name, r.ID)
			if ok && started[r.ID] {
				_, path := of.Text(r.ID)
				require.Equal(t, "//"+want.String(), path, name)
			}
		}
	}
	assert.NotZero(t, both, "ids that can be read in two ways")
	for _, v := range []int{3, 6, 8, 9, 10} {
		assert.True(t, versions[v], "a recording of .NET %d", v)
	}
}
