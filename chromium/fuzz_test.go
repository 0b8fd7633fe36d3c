package chromium_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// FuzzCopy copies any input and holds the copy against what the package promises.
func FuzzCopy(f *testing.F) {
	files, err := filepath.Glob("../testdata/chromium/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		if len(b) < 4<<10 {
			f.Add(b)
		}
	}
	f.Add([]byte(`{"a":[1,{"x":"]"}],"traceEvents":[` + eventA + `,` + eventB + `],"stackFrames":{"0":{"name":"x","category":"m"}}}`))
	f.Add([]byte(eventA + "\n" + eventB))
	f.Add([]byte(`{"traceEvents":[` + eventA + `],"stackFrames":{"0":{}},"stackFrames":{"1":{},"2":{}},"traceEvents":[` + eventB + `]}`))
	f.Add([]byte(`{"a" 1,"traceEvents":[` + eventA + `],b:[1,,{"\xe9":"\q"}],"stackFrames":{,"0":{"name":"` + "\xe9\n" + `"}}}]` + eventB))
	f.Fuzz(func(t *testing.T, in []byte) {
		opts := chromium.Options{MaxEventSize: 1 << 12, MaxDepth: 64}
		c := runCopy(bytes.NewReader(in), opts)
		var fe *chromium.FormatError
		if c.err != nil && !errors.As(c.err, &fe) {
			t.Fatalf("error %v is no FormatError", c.err)
		}
		// 1. The size of the reads makes no difference. Limits are only checked when
		// more input is needed, so it does for large events.
		if len(in) < 1<<11 {
			slow := runCopy(iotest.OneByteReader(bytes.NewReader(in)), opts)
			if slow.out != c.out || len(slow.raws) != len(c.raws) {
				t.Fatalf("read byte by byte:\n%q (%d events)\nat once:\n%q (%d events)", slow.out, len(slow.raws), c.out, len(c.raws))
			}
		}
		// 2. A valid document is copied byte by byte; a lone event is none.
		if json.Valid(in) && c.form != chromium.FormBare && c.err == nil && len(c.warned) == 0 && c.out != string(in) {
			t.Fatalf("in:\n%q\nout:\n%q", in, c.out)
		}
		if c.err != nil && !chromium.IsCut(c.err) {
			return
		}
		// 3. Every event is an object.
		for _, raw := range c.raws {
			if raw[0] != '{' || raw[len(raw)-1] != '}' {
				t.Fatalf("event %q", raw)
			}
		}
		// 4. The copy is one JSON document of UTF-8.
		if c.out != "" && (!json.Valid([]byte(c.out)) || !utf8.ValidString(c.out)) {
			t.Fatalf("in:\n%q\nout:\n%q", in, c.out)
		}
		// 5. What was put right needs no more of it: the copy of the copy is the copy.
		if c.form == chromium.FormUnknown || len(in) >= 1<<11 {
			return
		}
		again := runCopy(bytes.NewReader([]byte(c.out)), opts)
		if c.out != "" && again.out != c.out && !fatal(c) && !fatal(again) {
			t.Fatalf("in:\n%q\ncopy:\n%q\ncopy of the copy:\n%q %v %v", in, c.out, again.out, again.warned, again.err)
		}
	})
}

// fatal reports whether the copy stopped at a defect.
func fatal(c copied) bool { return c.err != nil && !chromium.IsCut(c.err) }
