package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name string
		rep  Trace
		want string
	}{
		{"nothing to say", Trace{Samples: 5}, ""},
		{"a note without cut samples", Trace{Samples: 5, Notes: []string{"the trace was repaired before"}}, "  note: the trace was repaired before\n"},
		{"cut and not repaired", Trace{Cut: 2, Notes: []string{"n"}}, "  note: n\n"},
		{
			"repaired", Trace{Cut: 1203, Repaired: map[string]int{"bridge": 3, "before": 1200, "zz": 1, "new": 2}, Notes: []string{"one", "two"}},
			"       1,200  known from the stack before\n" +
				"           3  not sure enough: bridged by one frame \"[frames lost]\"\n" +
				"           2  new\n" +
				"           1  zz\n" +
				"  note: one\n  note: two\n",
		},
		{
			"below what was asked for", Trace{Cut: 3, MinConfidence: 0.9, Repaired: map[string]int{"bridge": 3}},
			"           3  below 0.9 confidence: bridged by one frame \"[frames lost]\"\n",
		},
		{
			"every answer taken", Trace{Cut: 3, MinConfidence: -1, Repaired: map[string]int{"bridge": 3}},
			"           3  without an answer: bridged by one frame \"[frames lost]\"\n",
		},
		{
			"into a nettrace", Trace{Cut: 3, MinConfidence: 0.8, Repaired: map[string]int{"bridge": 3}, Output: &Output{Format: "nettrace"}},
			"           3  below 0.8 confidence: bridged by one frame \"[frames lost]\" (\"?!?\" in PerfView)\n",
		},
		{
			"where the rest is", Trace{Cut: 3, Repaired: map[string]int{"bridge": 3}, Rest: &Rest{Threads: []Share{{"thread 7", 2}, {"io 8", 1}}, Methods: []Share{{"M!A.B()", 3}}}, Next: "look"},
			"           3  not sure enough: bridged by one frame \"[frames lost]\"\n" +
				"              on         thread 7 (2)\n" +
				"                         io 8 (1)\n" +
				"              cut above  M!A.B (3)\n  next: look\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			c.rep.Explain(&b, 0)
			assert.Equal(t, c.want, b.String())
		})
	}
}

func TestSummaryOfBridges(t *testing.T) {
	rep := Trace{Input: Input{Name: "a"}, Samples: 5, Cut: 3, Repaired: map[string]int{"bridge": 2, "before": 1}, Restored: 1205, Output: &Output{Name: "b", Format: "chromium"}}
	assert.Equal(t, "a -> b: 33.3 % of 3 cut stacks repaired, 66.7 % bridged; 1,205 frames restored; 5 samples", rep.Summary())
}

// Repairs are written one by one, where the encoder of JSON would put a list of them, also in
// reports on several traces.
func TestReportOfRepairs(t *testing.T) {
	of := func(n int) *Repairs {
		return &Repairs{Err: func() error { return nil }, All: func(yield func(Repair) bool) {
			for i := range n {
				if !yield(Repair{Ms: float64(i), Why: `"repairs": [`, How: "chain", Restored: i, Confidence: 0.5}) {
					return
				}
			}
		}}
	}
	type wanted struct { // as a report is, but for the place of the list
		Input   any      `json:"input"`
		Repairs []Repair `json:"repairs"`
		Notes   []string `json:"notes"`
	}
	var all Traces
	for _, n := range []int{2, 0, 1} {
		x := &Trace{Notes: []string{"\"repairs\": [\n  null"}}
		if n > 0 {
			x.Repairs = of(n)
		}
		all.Traces = append(all.Traces, x)
		var b bytes.Buffer
		require.NoError(t, x.WriteJSON(&b))
		var got wanted
		require.NoError(t, json.Unmarshal(b.Bytes(), &got), b.String())
		require.Len(t, got.Repairs, n)
		assert.Equal(t, x.Notes, got.Notes)
		for i, r := range got.Repairs {
			assert.Equal(t, i, r.Restored)
		}
		var indented bytes.Buffer
		require.NoError(t, json.Indent(&indented, b.Bytes(), "", "  "))
		assert.Equal(t, indented.String(), b.String(), "indented as the rest")
	}
	var b bytes.Buffer
	require.NoError(t, all.WriteJSON(&b))
	var got struct{ Traces []wanted }
	require.NoError(t, json.Unmarshal(b.Bytes(), &got), b.String())
	assert.Len(t, got.Traces[0].Repairs, 2)
	assert.Len(t, got.Traces[2].Repairs, 1)
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, b.Bytes(), "", "  "))
	assert.Equal(t, indented.String(), b.String())

	gone := of(1)
	gone.Err = func() error { return errors.New("gone") }
	assert.ErrorContains(t, (&Trace{Repairs: gone}).WriteJSON(&b), "gone")
}

// Of several traces figures are summed, but for shares, the rate and what was at once, which are the
// highest, and requests per connection, which are the lowest that a trace has.
func TestServiceAdd(t *testing.T) {
	filled := func(n int) *Service {
		s := &Service{}
		v := reflect.ValueOf(s).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.Int:
				f.SetInt(int64(n * (i + 1)))
			case reflect.Pointer:
				f.Set(reflect.ValueOf(new(float64(n * (i + 1)))))
			default:
				f.SetFloat(float64(n * (i + 1)))
			}
		}
		return s
	}
	low, high, sum := filled(1), filled(2), filled(3)
	sum.PoolBlocked, sum.Rate, sum.MaxConcurrency, sum.RequestsEach = high.PoolBlocked, high.Rate, high.MaxConcurrency, low.RequestsEach
	for name, of := range map[string][]*Service{
		"low first": {low, high}, "high first": {high, low}, "with one that has none": {low, {}, high}, "and that one first": {{}, high, low},
	} {
		all := *of[0]
		for _, s := range of[1:] {
			all.Add(s)
		}
		assert.Equal(t, *sum, all, name)
	}
}

func TestPercent(t *testing.T) {
	for want, c := range map[string][2]int64{"0 %": {0, 5}, "100 %": {5, 5}, "< 0.1 %": {1, 100000}, "> 99.9 %": {99999, 100000}, "33.3 %": {1, 3}} {
		assert.Equal(t, want, Percent(c[0], c[1]))
	}
	assert.Equal(t, "150.0 %", Percent(3.0, 2.0), "of threads beside each other")
}
