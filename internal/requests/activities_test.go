package requests

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/httpreport"
	"github.com/tracefix/tracefix/internal/tracetest"
)

func activities(t *testing.T, name string, o *activity.Options) *activity.Rows {
	t.Helper()
	rows, _, err := Activities(context.Background(), open(t, tracetest.Corpus(t, "dotnet10", name+".nettrace")), o)
	require.NoError(t, err)
	return rows
}

func totals(tree *activity.Rows) map[string][5]float64 {
	m := map[string][5]float64{}
	for _, v := range httpreport.ActivityTotals(tree, nil) {
		m[v.Name] = [5]float64{float64(v.OK), float64(v.AutoStopped), float64(v.Unfinished), float64(v.OrphanStop), float64((int64(v.Sum)+500)/1000) / 1000}
	}
	return m
}

// The totals are those of activity-ids.md section 11.
func TestActivities(t *testing.T) {
	tree := activities(t, "activities", nil)
	assert.Equal(t, map[string][5]float64{
		"Request": {492, 82, 1, 0, 3827.066}, "Security": {328, 82, 0, 82, 1229.405}, "Database": {656, 0, 0, 0, 2538.326},
		"Visit": {2542, 0, 0, 0, 317.844}, "Lab.Activities/Order": {328, 0, 0, 0, 3807.107}, "Lab.Activities/Db": {656, 0, 0, 0, 2539.559},
	}, totals(tree))
	var b bytes.Buffer
	require.NoError(t, httpreport.ActivitiesNDJSON(&b, tree, nil, nil))
	roots, rows := 0, 0
	d := json.NewDecoder(&b)
	for d.More() {
		var r struct {
			Row       int      `json:"row"`
			ParentRow *int     `json:"parent_row"`
			Start     *float64 `json:"start_ms"`
			Status    string   `json:"status"`
			Duration  *float64 `json:"duration_ms"`
		}
		require.NoError(t, d.Decode(&r))
		require.Equal(t, rows, r.Row)
		rows++
		if r.ParentRow == nil && r.Start != nil {
			roots++
		}
		if r.Status == "ok" || r.Status == "auto-stopped" {
			require.NotNil(t, r.Duration)
		} else {
			require.Nil(t, r.Duration)
		}
	}
	assert.Equal(t, []int{5249, 657}, []int{rows, roots})
	b.Reset()
	require.NoError(t, httpreport.ActivitiesTree(&b, tree, nil, nil, 2, nil, 0))
	assert.Contains(t, b.String(), "deeper activities are not shown")
}

// Without ids nothing is paired unless that is asked for.
func TestActivitiesWithoutIDs(t *testing.T) {
	tree := activities(t, "activities-notpl", nil)
	assert.False(t, tree.HasIDs)
	assert.Zero(t, tree.Len())
	assert.Equal(t, []activity.Count{
		{Provider: "Lab-Orders", Name: "Request", Starts: 575, Stops: 492}, {Provider: "Lab-Orders", Name: "Security", Starts: 410, Stops: 410},
		{Provider: "Lab-Orders", Name: "Database", Starts: 656, Stops: 656}, {Provider: "Lab-Orders", Name: "Visit", Starts: 2542, Stops: 2542},
	}, tree.WithoutID)
	assert.Equal(t, map[string][5]float64{
		"Request": {485, 0, 90, 7, 9905.981}, "Security": {388, 0, 22, 22, 8665.040}, "Database": {640, 0, 16, 16, 5337.736}, "Visit": {2542, 0, 0, 0, 261.438},
	}, totals(activities(t, "activities-notpl", &activity.Options{PairByThread: true})))
}

// Every id of the encoders' test program decodes, with the faults of its runtime.
func TestActivitiesOfBothEncoders(t *testing.T) {
	for name, lossy := range map[string]bool{"activities-probe9": false, "activities-probe10": true} {
		tree := activities(t, name, nil)
		assert.Equal(t, lossy, tree.Lossy(), name)
		lost, old := 0, 0
		for _, r := range tree.All() {
			if r.ID.IsZero() {
				continue
			}
			p, ok := tree.Path(r)
			require.True(t, ok, "%s: %s", name, r.ID)
			assert.Equal(t, uint32(1), p.At(0))
			if p.HasLost() {
				lost++
			}
			if p.Old() {
				old++
			}
		}
		assert.Equal(t, lossy, lost > 0, name)
		assert.Equal(t, !lossy, old > 0, name)
	}
}
