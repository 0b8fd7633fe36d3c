package chromium_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// Spellings of one text are one name, whichever comes first; what is copied keeps its spelling.
func TestSpellings(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     []string // raw names of events
		groups []int    // events of one group have one NameID
	}{
		{"solidus", []string{`a\/b`, `a/b`, `a\u002fb`, `a\u002Fb`, `a/c`}, []int{0, 0, 0, 0, 1}},
		{"plain first", []string{`a/b`, `x`, `a\/b`, `a/b`}, []int{0, 1, 0, 0}},
		{"letter", []string{`\u0041`, `\u0041`, `A`, `\u0041`, `a`}, []int{0, 0, 0, 0, 1}},
		{"what must be escaped", []string{`a\"\\`, `a\u0022\u005c`, `a\n`, `a\u000a`, `a\\n`}, []int{0, 0, 1, 1, 2}},
		{"less common escapes", []string{`\r\b\f`, `\u000d\u0008\u000C`, `\ud83d\ude00`, "\U0001F600"}, []int{0, 0, 1, 1}},
		{"empty", []string{``, `\u0000`, ``}, []int{0, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, layout := range []string{`{"name":"%s","ph":"%c","ts":%d,"pid":1,"tid":2}`, `{"ph":"%[2]c","ts":%[3]d,"cat":"c","pid":1,"tid":2,"sf":1,"name":"%[1]s"}`} {
				var events []string
				for range 4 { // the layout and what follows what are learned
					for i, n := range c.in {
						events = append(events, fmt.Sprintf(layout, n, "BE"[i%2], len(events)))
					}
				}
				in := "[" + strings.Join(events, ",\n") + "]"
				r, err := chromium.NewReader(strings.NewReader(in), nil)
				require.NoError(t, err)
				ids := map[int]int32{}
				groups := map[int32]int{}
				n := 0
				for ev, err := range r.All() {
					require.NoError(t, err)
					i := n % len(c.in)
					assert.Equal(t, events[n], string(ev.Raw))
					assert.Equal(t, c.in[i], string(ev.Name), "Name is as it is spelled")
					assert.Equal(t, chromium.Unquote(ev.Name), r.Name(ev.NameID))
					assert.Less(t, int(ev.NameID), r.NumNames())
					g := c.groups[i]
					if _, ok := ids[g]; !ok {
						ids[g] = ev.NameID
						assert.Equal(t, c.in[i], string(r.RawName(ev.NameID)), "the first spelling")
						groups[ev.NameID] = g
					}
					assert.Equal(t, ids[g], ev.NameID, "event %d, %s", n, ev.Name)
					assert.Equal(t, g, groups[ev.NameID])
					n++
				}
				require.Equal(t, len(events), n)
				assert.Equal(t, in, runCopy(strings.NewReader(in), chromium.Options{}).out)
			}
		})
	}
}

// Escapes that JSON does not know are put right, and then are a spelling like others; text that is no
// UTF-8 is a name of its own.
func TestSpellingsOfFaults(t *testing.T) {
	in := `[{"name":"C:\dir","ph":"i"},{"name":"C:\\dir","ph":"i"},{"name":"C:\u005cdir","ph":"i"},{"name":"\u0041` + "\xff" + `","ph":"i"},{"name":"A` + "\xff" + `","ph":"i"}]`
	r, err := chromium.NewReader(strings.NewReader(in), &chromium.Options{Warn: func(*chromium.FormatError) {}})
	require.NoError(t, err)
	var names []string
	var ids []int32
	for ev, err := range r.All() {
		require.NoError(t, err)
		names, ids = append(names, r.Name(ev.NameID)), append(ids, ev.NameID)
	}
	require.Len(t, ids, 5)
	assert.Equal(t, []string{`C:\dir`, `C:\dir`, `C:\dir`}, names[:3])
	assert.Equal(t, ids[1], ids[2])
}
