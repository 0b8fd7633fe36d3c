package chromium

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBrokenStaysLinear counts the bytes that readings of broken events and frames cost
// which came to nothing. Each of them alone may look at a megabyte.
func TestBrokenStaysLinear(t *testing.T) {
	list := func(n int, item func(i int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return strings.Join(items, ",")
	}
	for name, in := range map[string]string{
		"events": `{"traceEvents":[` + list(20000, func(int) string { return `{"a":[{"k" x,{"ph":"B"}` }) + `]}`,
		"frames": `{"stackFrames":{` + list(20000, func(i int) string { return fmt.Sprintf(`"%d":{"k" x}`, i) }) + `},"traceEvents":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewReader(strings.NewReader(in), nil)
			require.NoError(t, err)
			var ev Event
			for r.Read(&ev) == nil {
			}
			assert.LessOrEqual(t, r.spent, int64(16*len(in)+2*maxTry))
			assert.Greater(t, r.spent, int64(maxTry), "the input costs something")
		})
	}
}

// TestBrokenFrameByReads: whether a broken frame can be put right does not depend on
// how its bytes arrive.
func TestBrokenFrameByReads(t *testing.T) {
	in := `{"stackFrames":{"1":{"name":"a "b" c","category":"m"},"2":{"n":1 2}` + strings.Repeat(" ", 100) + `,"3":{"name":"d"}},"traceEvents":[]}`
	for _, head := range []string{`{`, `{"x":"` + strings.Repeat("y", minWindow-150) + `",`} {
		count := func(oneByOne bool) (names string) {
			src := iotest.DataErrReader(strings.NewReader(head + in[1:]))
			if oneByOne {
				src = iotest.OneByteReader(src)
			}
			r, err := NewReader(src, &Options{StackFrame: func(f *StackFrame) error { names += string(f.Name) + ";"; return nil }})
			require.NoError(t, err)
			var ev Event
			for r.Read(&ev) == nil {
			}
			return names
		}
		assert.Equal(t, `a \"b\" c;d;`, count(false))
		assert.Equal(t, `a \"b\" c;d;`, count(true))
	}
}
