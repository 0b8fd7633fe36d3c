package view_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/profile"
)

var _ = flag.Bool("update", false, "write the golden pictures anew")

// TestGoldenPictures holds what the page looks like: its views, the repair switched off and on, a
// narrow window, dark colours, a trace that lacks things.
func TestGoldenPictures(t *testing.T) {
	b := tracetest.NewBrowser(t, 1400, 900)
	chain, lossy := pageOf(t, "../../testdata/chain.nettrace.zst"), pageFor(t, lossyProfile())
	for _, c := range []struct {
		name, page, hash string
		width            int
		dark             bool
	}{
		{"flame", chain, "", 1400, false},
		{"flame-recorded", chain, "#view=flame&recorded=1", 1400, false},
		{"flame-dark-narrow", chain, "", 700, true},
		{"time", chain, "#view=time&time=1200000000-1700000000", 1400, false},
		{"time-dark", chain, "#view=time&time=1200000000-1700000000&recorded=1", 1400, true},
		{"methods", chain, "#view=methods", 1400, false},
		{"lossy-time", lossy, "#view=time&threads=all", 1400, false},
		{"lossy-limits", lossy, "#view=limits", 1400, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.Show(c.width, 900, c.dark)
			b.Open("about:blank", "document.readyState === 'complete'")
			b.Open(c.page+c.hash, drawn)
			look(t, b)
			b.Golden(filepath.Join("testdata", "pictures", c.name+".png"))
		})
	}
	// The tolerance lets no other view pass.
	b.Show(1400, 900, false)
	b.Open("about:blank", "document.readyState === 'complete'")
	b.Open(chain, drawn)
	look(t, b)
	flame := b.Blocks()
	for _, key := range []string{"r", "2", "5"} {
		b.Key(key)
		look(t, b)
		assert.Greater(t, tracetest.Differ(flame, b.Blocks()), 0.04, "key %s", key)
	}
}

// lossyProfile has two threads, a gap in one that nothing explains, one in the other where events
// were lost, and damage between samples and behind them.
func lossyProfile() *profile.Profile {
	tab := profile.NewTable()
	frame := tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Module: "m", Name: "A()"})})
	stack := tab.Push(0, frame)
	proc := &profile.Process{PID: 4, Name: "app"}
	one, two := &profile.Thread{Process: proc, TID: 9}, &profile.Thread{Process: proc, TID: 10}
	for i := range int64(100) {
		s := profile.Sample{Time: i * 1e6, Stack: stack}
		if i < 20 || i > 60 {
			one.Samples.Append(s)
		}
		if i == 30 {
			s.Cut, s.Type = profile.CutDepth, profile.SampleExternal
		}
		if i < 64 || i > 96 {
			two.Samples.Append(s)
		}
	}
	return &profile.Profile{
		Table: tab, Processes: []*profile.Process{proc}, Threads: []*profile.Thread{one, two},
		Losses: []profile.Loss{{From: 70e6, To: 90e6, Events: 1234, Thread: two}},
		Meta: profile.Meta{Source: "a.nettrace", End: 100e6, Lost: 1234, Damages: 2, Damage: []profile.Damage{
			{Offset: 4711, Where: "StackBlock", What: "unexpected EOF", Time: 45e6}, {Offset: 9000, Where: "EventBlock", What: "events that cannot be right", Time: 150e6}}},
	}
}
