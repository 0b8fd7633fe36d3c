package tracefix_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

// A thread without a name has none when its file is read again, whatever viewers call it.
func TestNamelessThreadsStaySo(t *testing.T) {
	for _, format := range []string{"chromium", "speedscope"} {
		tab := profile.NewTable()
		stack := tab.Push(0, tab.AddFrame(profile.Frame{Method: tab.AddMethod(profile.Method{Name: "Main()"})}))
		p := &profile.Profile{Table: tab, Threads: []*profile.Thread{{TID: 7}, {TID: 8, Name: "Thread 9"}}}
		for _, th := range p.Threads {
			th.Samples.Append(profile.Sample{Stack: stack, Type: profile.SampleManaged})
		}
		var out bytes.Buffer
		require.NoError(t, tracefix.Write(&out, p, format, nil))
		name := filepath.Join(t.TempDir(), "a.json")
		require.NoError(t, os.WriteFile(name, out.Bytes(), 0o666))
		back, err := tracefix.Read(t.Context(), name, nil)
		require.NoError(t, err)
		require.Len(t, back.Threads, 2, format)
		assert.Empty(t, back.Threads[0].Name, format)
		assert.Equal(t, "Thread 9", back.Threads[1].Name, format)
	}
}

// Containers give their threads numbers of their own: two processes may have a thread 7 each.
// speedscope knows no processes; its file tells those who read it again which one each thread
// belongs to, and what they are called.
func TestSpeedscopeTellsProcesses(t *testing.T) {
	tab := profile.NewTable()
	stack := func(names ...string) (id profile.StackID) {
		for _, n := range names {
			m := tab.AddMethod(profile.Method{Module: "Shop", Name: n, Kind: profile.Managed})
			id = tab.Push(id, tab.AddFrame(profile.Frame{Method: m}))
		}
		return id
	}
	shop, nameless := &profile.Process{PID: 42, Name: "shop (1)"}, &profile.Process{PID: 77}
	p := &profile.Profile{
		Table: tab, Processes: []*profile.Process{shop, nameless},
		Threads: []*profile.Thread{
			{Process: shop, TID: 7, Name: "Main"},
			{Process: shop, TID: 8},
			{Process: nameless, TID: 7, Name: "Main"},
		},
	}
	for i, th := range p.Threads {
		for ms := range int64(20) {
			th.Samples.Append(profile.Sample{Time: ms * 1e6, Stack: stack("Main()", fmt.Sprint("Work", i, "()")), Type: profile.SampleManaged})
		}
	}
	list := func(p *profile.Profile) (list []string) {
		for _, th := range p.Threads {
			list = append(list, fmt.Sprint(th.Owner().PID, " ", th.Owner().Name, " ", th.TID, " ", th.Name))
		}
		return list
	}
	titles := func(file []byte) []string {
		var list []string
		for _, m := range regexp.MustCompile(`"type":"evented","name":("[^"]*")`).FindAllSubmatch(file, -1) {
			list = append(list, string(m[1]))
		}
		return list
	}
	var out bytes.Buffer
	require.NoError(t, tracefix.Write(&out, p, "speedscope", nil))
	name := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, os.WriteFile(name, out.Bytes(), 0o666))
	back, err := tracefix.Read(t.Context(), name, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, list(p), list(back))
	assert.Len(t, back.Processes, 2)
	back.Select(profile.Selection{Processes: []string{"shop*"}})
	assert.ElementsMatch(t, list(p)[:2], list(back))

	// Written again, threads are called what they were called before.
	back, err = tracefix.Read(t.Context(), name, nil)
	require.NoError(t, err)
	var again bytes.Buffer
	require.NoError(t, tracefix.Write(&again, back, "speedscope", nil))
	require.Len(t, titles(out.Bytes()), 3)
	assert.ElementsMatch(t, titles(out.Bytes()), titles(again.Bytes()))
}
