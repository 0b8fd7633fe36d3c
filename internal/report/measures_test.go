package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestQuantiles: of durations that are known, within the width of a bin.
func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var m Measurer
	var all []float64
	for range 20_000 {
		ns := int64(1e6 * (1 + rng.ExpFloat64()*40))
		all = append(all, float64(ns)/1e6)
		m.Request("server", "", "GET /a", false, ns)
	}
	slices.Sort(all)
	r := m.All().Routes[0]
	assert.Equal(t, 20_000, r.Ended())
	for _, q := range []float64{0.01, 0.5, 0.9, 0.95, 0.99} {
		assert.InEpsilon(t, all[int(q*20_000)], r.Quantile(q), 0.045, "%v", q)
	}
	assert.Zero(t, (&Measured{}).Quantile(0.95), "of none")
	assert.Equal(t, 0, DurationBin(-5))
	assert.Equal(t, lastBin, DurationBin(1<<62))
}

// TestMeasuresAddUp: in parts or at once, and through JSON, the sums are the same.
func TestMeasuresAddUp(t *testing.T) {
	add := func(m *Measurer, trace int) {
		m.Hot(map[string]float64{"A!A.Run()": float64(trace), "B!B.Run()": 5}, float64(trace)+5)
		m.Request("client", "shop", "GET /a", trace%3 == 0, int64(trace)*1e6)
		m.Request("server", "", "GET /b", false, -1)
	}
	var whole Measurer
	parts := make([]Measurer, 3)
	for i := 1; i <= 30; i++ {
		var one Measurer
		add(&one, i)
		whole.Add(one.One())
		parts[i%3].Add(one.One())
	}
	var joined Measurer
	for i := range parts {
		b, err := json.Marshal(parts[i].All())
		require.NoError(t, err)
		var back Measures
		require.NoError(t, json.Unmarshal(b, &back))
		joined.Add(&back)
	}
	assert.Equal(t, whole.All(), joined.All())
	all := whole.All()
	assert.Equal(t, 30, all.Traces)
	assert.InDelta(t, 465+150, all.CPU, 1e-9)
	assert.Equal(t, "A!A.Run()", all.Methods[0].Method)
	assert.InDelta(t, 465, all.Methods[0].Self, 1e-9)
	assert.Equal(t, 10, all.Routes[0].Errors)
	assert.Nil(t, (&Measurer{}).All())
	joined.Add(nil)
}

// TestMeasuresAreBounded: however many methods and routes there are.
func TestMeasuresAreBounded(t *testing.T) {
	var all Measurer
	requests := 0
	for trace := range 100 {
		self := map[string]float64{"A!Hot()": 1000}
		for i := range 200 {
			self[fmt.Sprintf("A!M%d_%d()", trace, i)] = 1 + float64(i)/1000
		}
		var one Measurer
		one.Hot(self, 1300)
		for i := range 300 {
			one.Request("client", fmt.Sprintf("host%d", trace), fmt.Sprintf("GET /%d", i), false, 1e6)
			requests++
		}
		m := one.One()
		assert.Len(t, m.Methods, maxMethods)
		assert.Len(t, m.Routes, maxRoutes+1, "and one of all others")
		assert.InDelta(t, 1.15, m.Missed, 0.01, "what the next one had")
		all.Add(m)
		assert.LessOrEqual(t, len(all.methods), 2*maxAllMethods+maxMethods)
		assert.LessOrEqual(t, len(all.routes), 2*maxAllRoutes+2)
	}
	m := all.All()
	assert.LessOrEqual(t, len(m.Methods), maxAllMethods)
	assert.LessOrEqual(t, len(m.Routes), maxAllRoutes+2)
	assert.InDelta(t, 100_000, m.Methods[0].Self, 1e-6)
	n := 0
	for _, r := range m.Routes {
		n += r.Count
	}
	assert.Equal(t, requests, n, "none is lost")
}
