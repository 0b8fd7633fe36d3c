package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/compat"
)

// number lays out a float as the reference does (section 3.4).
func number(v float64) string {
	s := strconv.FormatFloat(v, 'e', -1, 64)
	m, es, _ := strings.Cut(s, "e")
	e, _ := strconv.Atoi(es)
	if e < -4 || v == 0 && false {
		return m + fmt.Sprintf("E-%02d", -e)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

var jsEscapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`,
	"'", `\u0027`, "<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// chromium writes what section 3 makes of a trace, without the header.
func chromium(t *compat.Trace) []byte {
	type open struct {
		time      float64
		metric    float32
		depth, id int
	}
	type info struct {
		parent      int
		name, categ string
	}
	ids := map[uint32]int{}
	var infos []info
	var out bytes.Buffer
	out.WriteString(`"traceEvents": [`)
	first := true
	for _, th := range t.Threads {
		var prev []open
		last := 0.0
		event := func(kind string, id int, at float64) {
			if !first {
				out.WriteString(", ")
			}
			first = false
			fmt.Fprintf(&out, `{"name": "%s", "cat": "sampleEvent", "ph": "%s", "ts": %s, "pid": 0, "tid": %d, "sf": %d}`, infos[id].name, kind, number(at*1000), th.TID, id)
		}
		closeTop := func() {
			p := prev[len(prev)-1]
			prev = prev[:len(prev)-1]
			last = max(last, p.time+float64(p.metric))
			event("E", p.id, last)
		}
		for _, s := range th.Samples {
			var cur []open
			caller := -1
			for depth, f := range t.Table.AppendFrames(nil, s.Stack) {
				m := t.Table.Method(f)
				full := t.Table.MethodAt(m).Full()
				if full == "" {
					continue
				}
				id, ok := ids[m]
				if !ok {
					id = len(infos)
					ids[m] = id
					in := info{parent: caller, name: full}
					if i := strings.IndexByte(full, '!'); i > 0 {
						in.categ, in.name = full[:i], full[i+1:]
					}
					in.name = jsEscapes.Replace(in.name)
					infos = append(infos, in)
				}
				cur = append(cur, open{s.Time, s.Metric, depth, id})
				caller = id
			}
			i := 0
			for i < len(prev) && i < len(cur) && prev[i].depth == cur[i].depth && prev[i].id == cur[i].id &&
				!(prev[i].time+float64(float64(prev[i].metric)*1.001) < cur[i].time) {
				prev[i].metric += cur[i].metric
				i++
			}
			for len(prev) > i {
				closeTop()
			}
			for _, c := range cur[i:] {
				last = max(last, c.time)
				event("B", c.id, last)
				prev = append(prev, c)
			}
		}
		for len(prev) > 0 {
			closeTop()
		}
	}
	out.WriteString(`], "displayTimeUnit": "ms", "stackFrames": {`)
	for i, in := range infos {
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprintf(&out, `"%d": {"name": "%s", "category": "%s"`, i, in.name, in.categ)
		if in.parent >= 0 {
			fmt.Fprintf(&out, `, "parent": %d`, in.parent)
		}
		out.WriteString("}")
	}
	out.WriteString("}}")
	return out.Bytes()
}

// What the reference's Chromium writer makes of the samples is its own file, byte for
// byte: then every sample, time and synthetic frame is the reference's.
func TestCompatEqualsReference(t *testing.T) {
	for _, name := range []string{"chain", "shared", "recursion", "async", "library", "noise", "csc", "web", "http-cpu", "requests-short"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "chain" && name != "http-cpu" {
				t.Skip("large")
			}
			c, _, err := Compat(context.Background(), opener(t, "dotnet10/"+name+".nettrace"), nil)
			require.NoError(t, err)
			got := chromium(c)
			z, err := unpack(find(t, "dotnet10/reference/"+name+".chromium.json"))
			require.NoError(t, err)
			defer z.Close()
			want, err := io.ReadAll(z)
			require.NoError(t, err)
			want = want[bytes.Index(want, []byte(`"traceEvents"`)):]
			if bytes.Equal(got, want) {
				return
			}
			i := 0
			for i < len(got) && i < len(want) && got[i] == want[i] {
				i++
			}
			a := max(0, i-200)
			t.Fatalf("%d bytes, reference %d; first difference at %d:\nours      %.400s\nreference %.400s", len(got), len(want), i, got[a:], want[a:])
		})
	}
}
