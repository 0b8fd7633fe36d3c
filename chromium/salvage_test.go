package chromium

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

// TestFramesAddedBehindBroken: who adds an entry of stackFrames is told how many are in the output,
// or a comma is wrong. What is broken is none of them.
func TestFramesAddedBehindBroken(t *testing.T) {
	for _, c := range []struct {
		in, out string
		n       int
	}{
		{`{}`, `{"9":{}}`, 0},
		{`{""}`, `{"9":{}}`, 0},
		{`{"":1}`, `{"":1,"9":{}}`, 1},
		{`{"" "1":{"name":"a"}}`, `{"9":{}}`, 0}, // what is broken ends with a brace
		{`{"","1":{"name":"a"}}`, `{"9":{}}`, 0},
		{`{"1":{"name":"a"},"2":{x}}`, `{"1":{"name":"a"},"9":{}}`, 1},
		{`{"2":{x},"1":{"name":"a"}}`, `{"1":{"name":"a"},"9":{}}`, 1},
		{`{"1":{"name":"a"},"2":{x},"3":{"name":"b"}}`, `{"1":{"name":"a"},"3":{"name":"b"},"9":{}}`, 2},
		{`{"2":{x},"3":{y}}`, `{"9":{}}`, 0},
	} {
		var out bytes.Buffer
		told := -1
		r, err := NewReader(strings.NewReader(`{"traceEvents":[],"stackFrames":`+c.in+`}`), &Options{
			Outside: &out,
			StackFramesEnd: func(n int) error {
				told = n
				if n > 0 {
					out.WriteByte(',')
				}
				out.WriteString(`"9":{}`)
				return nil
			},
		})
		require.NoError(t, err)
		var ev Event
		for err == nil {
			err = r.Read(&ev)
		}
		assert.True(t, json.Valid(out.Bytes()) || err != io.EOF, "%s became %s", c.in, out.String())
		assert.Equal(t, c.n, told, c.in)
		assert.Equal(t, `{"traceEvents":[],"stackFrames":`+c.out+`}`, strings.ReplaceAll(out.String(), " ", ""), c.in)
	}
}
