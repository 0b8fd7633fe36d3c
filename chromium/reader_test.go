package chromium_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// copied is what a copy through Reader and Writer gives.
type copied struct {
	out    string
	raws   []string
	phases string
	warned []error
	err    error
	form   chromium.Form
}

// runCopy copies in through a Reader and a Writer.
func runCopy(in io.Reader, opts chromium.Options) copied {
	var c copied
	var out bytes.Buffer
	w := chromium.NewWriter(&out)
	opts.Outside = w.Outside()
	opts.Warn = func(fe *chromium.FormatError) { c.warned = append(c.warned, fe) }
	r, err := chromium.NewReader(in, &opts)
	if err != nil {
		c.err = err
		return c
	}
	var phases []byte
	for ev, err := range r.All() {
		if err != nil {
			c.err = err
			break
		}
		c.raws = append(c.raws, string(ev.Raw))
		phases = append(phases, ev.Phase)
		if err := w.Write(ev); err != nil {
			c.err = err
			return c
		}
	}
	c.phases = string(phases)
	if err := w.Close(); err != nil && c.err == nil {
		c.err = err
	}
	c.out = out.String()
	c.form = r.Form()
	return c
}

// corpus returns the unpacked real files, by name.
func corpus(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	for _, dir := range []string{"../testdata/chromium", "../../shared/corpus/chromium", "../../shared/corpus/chromium/small"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.IsDir() || strings.HasSuffix(e.Name(), ".md") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
			files[e.Name()] = unpack(t, b)
		}
	}
	require.NotEmpty(t, files, "no trace in testdata/chromium")
	return files
}

func unpack(t testing.TB, b []byte) []byte {
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bytes.NewReader(b))
		require.NoError(t, err)
		b, err = io.ReadAll(z)
		require.NoError(t, err)
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(bytes.NewReader(b))
		require.NoError(t, err)
		defer z.Close()
		b, err = io.ReadAll(z)
		require.NoError(t, err)
	case bytes.HasPrefix(b, []byte("PK\x03\x04")):
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		f, err := z.File[0].Open()
		require.NoError(t, err)
		b, err = io.ReadAll(f)
		require.NoError(t, err)
	}
	return b
}

// A copy without changes has the bytes of the input, with its end where an array has none, and the events
// are those that a whole-file JSON parser finds.
func TestIdentity(t *testing.T) {
	for name, in := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			c := runCopy(bytes.NewReader(in), chromium.Options{})
			require.NoError(t, c.err)
			assert.Empty(t, c.warned)
			want := string(in)
			if c.form == chromium.FormOpen {
				want = closed(want)
			}
			assert.True(t, c.out == want, "the copy differs from the input")
			assert.True(t, json.Valid([]byte(c.out)))
			assert.Equal(t, wantEvents(t, in), len(c.raws))
			for i, raw := range c.raws {
				if !assert.True(t, json.Valid([]byte(raw)), "event %d: %s", i, raw) {
					break
				}
			}
		})
	}
}

// closed is an open array with its end.
func closed(in string) string {
	end := strings.TrimRight(in, ", \n\r\t")
	return end + strings.ReplaceAll(in[len(end):], ",", "") + "]"
}

// wantEvents counts the events with encoding/json.
func wantEvents(t *testing.T, in []byte) int {
	var elems []json.RawMessage
	in = bytes.TrimPrefix(in, []byte("\xef\xbb\xbf"))
	var doc struct {
		TraceEvents []json.RawMessage `json:"traceEvents"`
	}
	if json.Unmarshal(in, &doc) == nil {
		return len(doc.TraceEvents)
	}
	if json.Unmarshal(in, &elems) == nil {
		return len(elems)
	}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimRight(string(in), ", \n\r\t")+"]"), &elems))
	return len(elems)
}

// The reader's view of each event is that of encoding/json.
func TestFields(t *testing.T) {
	for name, in := range corpus(t) {
		if len(in) > 4<<20 {
			continue
		}
		t.Run(name, func(t *testing.T) { checkFields(t, in) })
	}
}

// What comes next is guessed: events that are nearly as guessed are read as they are.
func TestGuesses(t *testing.T) {
	names := []string{`a`, `ab`, `abc`, `a\"`, `\u00e9`, `Main(int32)`, `Main(int32,class System.String[])`}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		pick := func(n int) bool { return rnd.IntN(n) == 0 }
		sf, ts, tid := seed%3 > 0, 0, 1
		var open []int
		var in bytes.Buffer
		in.WriteString(`{"traceEvents": [`)
		for i := range 400 {
			if i > 0 {
				in.WriteString(", ")
			}
			ph, name := "B", 0
			switch {
			case len(open) > 0 && rnd.IntN(2) == 0:
				ph, name = "E", open[len(open)-1]
				open = open[:len(open)-1]
			case len(open) > 0 && rnd.IntN(4) > 0:
				name = (open[len(open)-1]*5 + 1) % len(names)
				open = append(open, name)
			default:
				name = rnd.IntN(len(names))
				open = append(open, name)
			}
			if pick(40) {
				ph = string("EBXiMé"[rnd.IntN(5)])
			}
			if pick(5) {
				ts += rnd.IntN(1000)
			}
			if pick(80) {
				tid = rnd.IntN(3)
			}
			id := name
			if pick(30) {
				id = rnd.IntN(30)
			}
			fmt.Fprintf(&in, `{"name": "%s", "cat": "c", "ph": "%s", "ts": %d.%d, "pid": 0, "tid": %d`, names[name], ph, ts, rnd.IntN(2), tid)
			if sf != pick(100) {
				fmt.Fprintf(&in, `, "sf": %d`, id)
			}
			if pick(50) {
				in.WriteString(`, "args": {"sf": 1}`)
			}
			in.WriteString("}")
		}
		in.WriteString("]}")
		checkFields(t, in.Bytes())
	}
}

func checkFields(t *testing.T, in []byte) {
	r, err := chromium.NewReader(bytes.NewReader(in), nil)
	require.NoError(t, err)
	for ev, err := range r.All() {
		require.NoError(t, err)
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(ev.Raw, &want))
		var wantName, wantCat, wantPh *string
		_ = json.Unmarshal(want["name"], &wantName)
		_ = json.Unmarshal(want["cat"], &wantCat)
		_ = json.Unmarshal(want["ph"], &wantPh)
		if wantName == nil {
			assert.Zero(t, ev.NameID)
		} else {
			assert.Equal(t, *wantName, r.Name(ev.NameID))
			assert.Equal(t, *wantName, chromium.Unquote(ev.Name))
		}
		if wantCat == nil {
			assert.Nil(t, ev.Cat)
		} else {
			assert.Equal(t, *wantCat, chromium.Unquote(ev.Cat))
		}
		if wantPh != nil {
			assert.Equal(t, (*wantPh)[0], ev.Phase)
		}
		th := r.Threads()[ev.Thread]
		for _, f := range []struct {
			key string
			got []byte
		}{{"ts", ev.TS.Text}, {"dur", ev.Dur.Text}, {"pid", ev.PID}, {"tid", ev.TID}, {"sf", ev.SF}, {"id", ev.ID}, {"args", ev.Args},
			{"pid", []byte(th.PID)}, {"tid", []byte(th.TID)}} {
			if !assert.Equal(t, string(want[f.key]), string(f.got), "%s of %s", f.key, ev.Raw) {
				t.FailNow()
			}
		}
	}
}

const eventA = `{"name":"a","cat":"c","ph":"B","ts":1,"pid":1,"tid":2}`
const eventB = `{"name":"b","cat":"c","ph":"E","ts":2.5,"pid":1,"tid":2}`

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, in string
		form     chromium.Form
		events   int
		out      string // "": as in
	}{
		{"object", `{"traceEvents":[` + eventA + `,` + eventB + `]}`, chromium.FormObject, 2, ""},
		{"empty object form", `{"traceEvents":[]}`, chromium.FormObject, 0, ""},
		{"keys on both sides", "\n{ \"a\" : [1,{\"x\":\"]\"}] , \"traceEvents\" : [ " + eventA + "\n,\n" + eventB + " ] , \"stackFrames\":{}, \"b\":null }\n", chromium.FormObject, 2, ""},
		{"escaped key", `{"trace\u0045vents":[` + eventA + `]}`, chromium.FormObject, 1, ""},
		{"two arrays", `{"traceEvents":[` + eventA + `],"traceEvents":[` + eventB + `]}`, chromium.FormObject, 2, ""},
		{"array", `[` + eventA + `,` + eventB + `]`, chromium.FormArray, 2, ""},
		{"empty array", `[]`, chromium.FormArray, 0, ""},
		{"open array", `[` + eventA + `,` + eventB, chromium.FormOpen, 2, `[` + eventA + `,` + eventB + `]`},
		{"open array, comma", `[` + eventA + ",\n", chromium.FormOpen, 1, `[` + eventA + "\n]"},
		{"bracket only", `[`, chromium.FormOpen, 0, `[]`},
		{"bare", eventA + ",\n" + eventB + ",\n", chromium.FormBare, 2, `[` + eventA + ",\n" + eventB + "\n]"},
		{"bare, comma first", "," + eventA + "\n," + eventB, chromium.FormBare, 2, `[` + eventA + "\n," + eventB + `]`},
		{"bare, one", eventA, chromium.FormBare, 1, `[` + eventA + `]`},
		{"NDJSON", eventA + "\n" + eventB + "\n", chromium.FormBare, 2, `[` + eventA + ",\n" + eventB + "\n]"},
		{"nothing between", eventA + eventB, chromium.FormBare, 2, `[` + eventA + `,` + eventB + `]`},
		{"empty event", `[` + eventA + `,{}]`, chromium.FormArray, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, chunk := range []int{0, 1} {
				var in io.Reader = strings.NewReader(c.in)
				if chunk == 1 {
					in = iotest.OneByteReader(in)
				}
				got := runCopy(in, chromium.Options{})
				require.NoError(t, got.err)
				assert.Empty(t, got.warned)
				assert.Equal(t, cmp.Or(c.out, c.in), got.out)
				assert.True(t, json.Valid([]byte(got.out)))
				assert.Len(t, got.raws, c.events)
				assert.Equal(t, c.form, got.form)
			}
		})
	}
}

// The rows of chromium-trace.md section 12 that concern a reader. warn and err are
// parts of the texts expected; out is the copy.
func TestMalformed(t *testing.T) {
	a, b := eventA, eventB
	for _, c := range []struct {
		name, in, out string
		events        int
		warn, err     string
	}{
		{"1 byte order mark", "\xef\xbb\xbf \n[" + a + "]", " \n[" + a + "]", 1, "", ""},
		{"2 UTF-16", "\xff\xfe[\x00", "", 0, "", "UTF-16"},
		{"5 object cut between events", `{"traceEvents":[` + a + `,`, `{"traceEvents":[` + a + `]}`, 1, "", "unexpected EOF"},
		{"6 cut inside an event", `[` + a + `,{"name":"b","ca`, `[` + a + `]`, 1, "", "unexpected EOF"},
		{"6 the same in the object form", `{"traceEvents":[` + a + `,` + b[:20], `{"traceEvents":[` + a + `]}`, 1, "", "unexpected EOF"},
		{"7 cut in a value behind the events", `{"traceEvents":[` + a + `],"x":{"y":[1,{"z":"half`, `{"traceEvents":[` + a + `],"x":{"y":[1,{}]}}`, 1, "", "unexpected EOF"},
		{"7 cut in a key", `{"traceEvents":[` + a + `],"x":1,"tr`, `{"traceEvents":[` + a + `],"x":1}`, 1, "", "unexpected EOF"},
		{"7 cut in stackFrames", `{"traceEvents":[` + a + `],"stackFrames":{"0":{"name":"x"},"1":{"na`, `{"traceEvents":[` + a + `],"stackFrames":{"0":{"name":"x"}}}`, 1, "", "unexpected EOF"},
		{"9 two arrays", `[` + a + `][` + b + `]`, `[` + a + `]`, 1, "after the end", ""},
		{"9 two objects", `{"traceEvents":[` + a + `]}{"traceEvents":[` + b + `]}`, `{"traceEvents":[` + a + `]}`, 1, "after the end", ""},
		{"bytes behind the end", `{"traceEvents":[` + a + `]}` + "\n\x00\x00", `{"traceEvents":[` + a + `]}` + "\n", 1, "beginning with '\\x00'", ""},
		{"10 leading comma", `[,` + a + `]`, `[` + a + `]`, 1, "comma", ""},
		{"10 doubled comma", `[` + a + `,,` + b + `]`, `[` + a + `,` + b + `]`, 2, "comma", ""},
		{"10 missing comma", `[` + a + "\n" + b + `]`, `[` + a + ",\n" + b + `]`, 2, "comma", ""},
		{"11 trailing comma", `[` + a + `, ]`, `[` + a + ` ]`, 1, "comma", ""},
		{"11 trailing comma in an event", `[{"ph":"B","a":[1,2,],},` + b + `]`, `[{"ph":"B","a":[1,2]},` + b + `]`, 2, "faulty", ""},
		{"11 doubled comma in an event", `[{"ph":"B",,"a":1}]`, `[{"ph":"B","a":1}]`, 1, "faulty", ""},
		{"12 null", `[null,` + a + `,7,"x",[1,{"a":2}],` + b + `]`, `[` + a + `,` + b + `]`, 2, "not an object", ""},
		{"13 control characters", "[{\"name\":\"a\nb\x00\",\"ph\":\"B\"}]", `[{"name":"a\nb\u0000","ph":"B"}]`, 1, "faulty", ""},
		{"14 unescaped backslash", `[{"name":"C:\app\q","ph":"B"}]`, `[{"name":"C:\\app\\q","ph":"B"}]`, 1, "faulty", ""},
		{"15 unescaped quote", `[{"name":"say "hi" now","ph":"B"},` + b + `]`, `[{"name":"say \"hi\" now","ph":"B"},` + b + `]`, 2, "faulty", ""},
		{"15 unescaped quote in a category", `{"traceEvents":[` + a + `],"stackFrames":{"0":{"name":"x","category":"--dir "C:\app""},"1":{"name":"y"}}}`,
			`{"traceEvents":[` + a + `],"stackFrames":{"0":{"name":"x","category":"--dir \"C:\\app\""},"1":{"name":"y"}}}`, 1, "faulty", ""},
		{"16 invalid UTF-8", "[{\"name\":\"a\xff\xfe\",\"ph\":\"B\"}]", "[{\"name\":\"a\ufffd\ufffd\",\"ph\":\"B\"}]", 1, "2 bytes that are not UTF-8", ""},
		{"16 in args, with control characters", "[{\"ph\":\"B\",\"args\":{\"é\":\"\xe9\x01\"}}]", `[{"ph":"B","args":{"é":"` + "\ufffd" + `\u0001"}}]`, 1, "faulty", ""},
		{"16 in a category", "[{\"cat\":\"\xe9\",\"ph\":\"B\"},{\"cat\":\"\xe9\",\"ph\":\"E\"}]", "[{\"cat\":\"\ufffd\",\"ph\":\"B\"},{\"cat\":\"\ufffd\",\"ph\":\"E\"}]", 2, "UTF-8", ""},
		{"16 in a key", "[{\"\xe9\":1,\"ph\":\"B\"}]", "[{\"\ufffd\":1,\"ph\":\"B\"}]", 1, "UTF-8", ""},
		{"16 in stackFrames", "{\"stackFrames\":{\"\xe9\":{\"name\":\"\xe9\"}},\"traceEvents\":[" + a + "]}", "{\"stackFrames\":{\"\ufffd\":{\"name\":\"\ufffd\"}},\"traceEvents\":[" + a + "]}", 1, "UTF-8", ""},
		{"16 outside events", "{\"\xe9\":[\"\xe9\"],\"traceEvents\":[" + a + "]}", "{\"\ufffd\":[\"\ufffd\"],\"traceEvents\":[" + a + "]}", 1, "UTF-8", ""},
		{"line break in args", "[{\"ph\":\"B\",\"args\":{\n\"a\":\"x\ny\"}}," + b + "]", "[{\"ph\":\"B\",\"args\":{\n\"a\":\"x\\ny\"}}," + b + "]", 2, "faulty", ""},
		{"unescaped backslash in args", `[{"ph":"B","args":{"a":"C:\app\q"}},{"ph":"B","args":{"a":"C:\app\q"}}]`, `[{"ph":"B","args":{"a":"C:\\app\\q"}},{"ph":"B","args":{"a":"C:\\app\\q"}}]`, 2, "faulty", ""},
		{"faults outside events", `{,"a":{,"b":[1,,2,],"c":NaN,},, "d":"\q" "traceEvents":[` + a + `],"e":01}`, `{ "a":{"b":[1,2],"c":"NaN"},  "d":"\\q", "traceEvents":[` + a + `],"e":1}`, 1, "comma", ""},
		{"commas in stackFrames", `{"traceEvents":[` + a + `],"stackFrames":{,"0":{"name":"x"},,"1":{"name":"y"} "2":{"name":"z"}}}`, `{"traceEvents":[` + a + `],"stackFrames":{ "0":{"name":"x"}, "1":{"name":"y"}, "2":{"name":"z"}}}`, 1, "comma", ""},
		{"broken key before the events", `{"a":1,b":2,"traceEvents":[` + a + `],"c":3}`, `{"a":1, "traceEvents":[` + a + `],"c":3}`, 1, "invalid JSON", ""},
		{"broken first key", `{"a" 1,"traceEvents":[` + a + `]}`, `{"traceEvents":[` + a + `]}`, 1, "invalid JSON", ""},
		{"broken colon", `{"traceEvents"[` + a + `],"c":3}`, `{"traceEvents":[` + a + `],"c":3}`, 1, "invalid JSON", ""},
		{"broken quote", `{"x":1,"traceEventsb:[` + a + `]}`, `{"x":1, "traceEvents":[` + a + `]}`, 1, "invalid JSON", ""},
		{"another quote", `{"x":1,!traceEvents":[` + a + `]}`, `{"x":1, "traceEvents":[` + a + `]}`, 1, "invalid JSON", ""},
		{"a letter of the key", `{"x":1,"traceEventr":[` + a + `],"stbckFrames":{"0":{"name":"x"}}}`, `{"x":1, "traceEvents":[` + a + `], "stackFrames":{"0":{"name":"x"}}}`, 1, "read as", ""},
		{"broken key before stackFrames", `{"traceEvents":[` + a + `],a":2,"stackFrames":{"0":{"name":"x"}}}`, `{"traceEvents":[` + a + `], "stackFrames":{"0":{"name":"x"}}}`, 1, "invalid JSON", ""},
		{"control character in args", "[{\"name\":\"é\",\"ph\":\"B\",\"args\":{\"a\":\"x\x01y\"}}," + b + "]", `[{"name":"é","ph":"B","args":{"a":"x\u0001y"}},` + b + "]", 2, "faulty", ""},
		{"18 lone surrogate", `[{"name":"\ud83d","ph":"B"}]`, `[{"name":"\ud83d","ph":"B"}]`, 1, "", ""},
		{"19 NaN", `[{"name":"c","ph":"C","ts":1,"args":{"v":NaN,"w":-Infinity}}]`, `[{"name":"c","ph":"C","ts":1,"args":{"v":"NaN","w":"-Infinity"}}]`, 1, "faulty", ""},
		{"20 odd numbers", `[{"ph":"C","args":[.5,5.,01,+1,-.5,0x10,1_000]}]`, `[{"ph":"C","args":[0.5,5,1,1,-0.5,"0x10","1_000"]}]`, 1, "faulty", ""},
		{"28 duplicate keys", `[{"name":"x","name":"a","ph":"E","ph":"B"}]`, `[{"name":"x","name":"a","ph":"E","ph":"B"}]`, 1, "", ""},
		{"41 nested traceEvents", `{"traceEvents":{"traceEvents":[` + a + `],"x":1},"y":2}`, `{"traceEvents":{"traceEvents":[` + a + `],"x":1},"y":2}`, 1, "inside", ""},
		{"43 HTML", "<html>", "", 0, "", "HTML"},
		{"43 ftrace", "# tracer: nop", "", 0, "", "ftrace"},
		{"43 something else", "hello", "", 0, "", "expected { or ["},
		{"empty input", "", "", 0, "", "empty"},
		{"no traceEvents", `{"a":1}`, `{"a":1}`, 0, "no traceEvents", ""},
		{"traceEvents is null", `{"traceEvents":null}`, `{"traceEvents":null}`, 0, "expected an array", ""},
		{"broken event in the middle", `[` + a + `,{"name":"x" BROKEN, "ph":"B"},` + b + `]`, `[` + a + `,` + b + `]`, 2, "invalid JSON", ""},
		{"broken first event", `[{"name":"x" BROKEN, "ph":"B"},` + b + `]`, `[` + b + `]`, 1, "invalid JSON", ""},
		{"broken last event", `{"traceEvents":[` + a + `,{"name":"x" BROKEN}], "displayTimeUnit":"ms"}`, `{"traceEvents":[` + a + `], "displayTimeUnit":"ms"}`, 1, "invalid JSON", ""},
		{"chunk missing", `[{"name":"x","ca` + a + `,` + b + `]`, `[` + a + `,` + b + `]`, 2, "invalid JSON", ""},
		{"NUL bytes between events", `[` + a + `,` + strings.Repeat("\x00", 100) + b + `]`, `[` + a + `,` + b + `]`, 2, "invalid JSON", ""},
		{"NUL bytes over an event's end", `[` + a + `,{"name":"x"` + strings.Repeat("\x00", 4096) + `,` + b + `]`, `[` + a + `,` + b + `]`, 2, "invalid JSON", ""},
		{"broken value before the events", `{"a":{"b":1, oops},"traceEvents":[` + a + `]}`, `{"a":{"b":1}, "traceEvents":[` + a + `]}`, 1, "invalid JSON", ""},
		{"broken value behind the events", `{"traceEvents":[` + a + `],"a":{"b":1, oops},"c":3}`, `{"traceEvents":[` + a + `],"a":{"b":1}}`, 1, "", "invalid JSON"},
		{"trailing comma at the top", `{"traceEvents":[` + a + `],}`, `{"traceEvents":[` + a + `]}`, 1, "comma", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, one := range []bool{false, true} {
				var in io.Reader = strings.NewReader(c.in)
				if one {
					in = iotest.OneByteReader(in)
				}
				got := runCopy(in, chromium.Options{})
				if c.err == "" {
					require.NoError(t, got.err)
				} else {
					require.ErrorContains(t, got.err, c.err)
					var fe *chromium.FormatError
					require.ErrorAs(t, got.err, &fe)
					assert.LessOrEqual(t, fe.Offset, int64(len(c.in)))
				}
				if c.warn == "" {
					assert.Empty(t, got.warned)
				} else if assert.NotEmpty(t, got.warned) {
					assert.ErrorContains(t, got.warned[0], c.warn)
				}
				assert.Equal(t, c.out, got.out)
				assert.Len(t, got.raws, c.events)
			}
			if c.warn != "" {
				got := runCopy(strings.NewReader(c.in), chromium.Options{Strict: true})
				assert.ErrorContains(t, got.err, c.warn, "strict")
			}
		})
	}
}

// A number larger than an event may be is passed on like any other large value, and what
// follows is read; one that the input ends in stays a number.
func TestLargeNumbers(t *testing.T) {
	digits := strings.Repeat("7", 5<<20)
	for _, end := range []string{`},` + eventB + `]`, ""} {
		in := `[` + eventA + `,{"ph":"B","ts":` + digits + end
		got := runCopy(strings.NewReader(in), chromium.Options{MaxEventSize: 1 << 20})
		require.NotEmpty(t, got.warned)
		assert.ErrorContains(t, got.warned[0], "larger than the limit")
		assert.True(t, json.Valid([]byte(got.out)))
		assert.Greater(t, len(got.out), len(digits))
		if end == "" {
			assert.ErrorContains(t, got.err, "unexpected EOF")
			assert.Len(t, got.raws, 1)
			continue
		}
		assert.NoError(t, got.err)
		assert.Len(t, got.raws, 2)
		assert.True(t, in == got.out, "bytes differ")
	}
}

// Every prefix of a trace gives all events that are whole in it, and a valid
// document as its copy; one that is no legal open array gives an error.
func TestPrefixes(t *testing.T) {
	for name, in := range map[string]string{
		"object": `{"a": {"x":[1,"\u00e9\\"]}, "traceEvents": [` + eventA + `, ` + eventB + `, {"ph":"i","args":{"k":["v",{}]}}], "stackFrames": {"0": {"name": "f", "category": "m"}, "1": {"name": "g", "parent": 0}}, "z": [true, null]}`,
		"array":  `[` + eventA + ",\n" + eventB + `]`,
	} {
		whole := runCopy(strings.NewReader(in), chromium.Options{})
		require.NoError(t, whole.err)
		for n := range len(in) {
			got := runCopy(strings.NewReader(in[:n]), chromium.Options{})
			if name == "object" {
				assert.Error(t, got.err, "prefix %d", n)
			}
			for i, raw := range got.raws {
				assert.Equal(t, whole.raws[i], raw)
			}
			if n > 0 && name == "object" {
				assert.True(t, json.Valid([]byte(got.out)), "prefix %q: copy %q", in[:n], got.out)
			}
		}
	}
}

func TestReaders(t *testing.T) {
	in := []byte(`{"traceEvents":[` + strings.Repeat(eventA+`, `+eventB+`, `, 500) + eventA + `]}`)
	want := runCopy(bytes.NewReader(in), chromium.Options{})
	require.NoError(t, want.err)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data with error": iotest.DataErrReader,
	} {
		got := runCopy(wrap(bytes.NewReader(in)), chromium.Options{})
		assert.Equal(t, want, got, name)
	}
	boom := errors.New("boom")
	got := runCopy(io.MultiReader(bytes.NewReader(in[:3000]), iotest.ErrReader(boom)), chromium.Options{})
	require.ErrorIs(t, got.err, boom)
	var fe *chromium.FormatError
	assert.False(t, errors.As(got.err, &fe), "a failing reader is no format error")
	got = runCopy(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(in))), chromium.Options{})
	assert.ErrorIs(t, got.err, iotest.ErrTimeout)
}

func TestDepth(t *testing.T) {
	const n = 100_000
	deep := strings.Repeat(`[`, n) + strings.Repeat(`]`, n)
	for _, in := range []string{
		`[{"ph":"B","args":` + deep + `},` + eventB + `]`,
		`{"x":` + deep + `,"traceEvents":[` + eventB + `]}`,
	} {
		got := runCopy(strings.NewReader(in), chromium.Options{})
		require.NoError(t, got.err)
		assert.Equal(t, in, got.out)
		got = runCopy(strings.NewReader(in), chromium.Options{MaxDepth: 1000})
		assert.ErrorIs(t, got.err, chromium.ErrTooDeep)
	}
	for _, open := range []string{`[`, `{"a":`, `[{"a":`} {
		in := `[` + strings.Repeat(open, n)
		got := runCopy(strings.NewReader(in), chromium.Options{})
		assert.Error(t, got.err)
	}
}

// A text that is larger than all memory goes through, and one that is larger
// still behind it in the same event.
func TestLargeStrings(t *testing.T) {
	size := int64(300 << 20)
	if testing.Short() {
		size = 36 << 20
	}
	for _, c := range []struct{ before, after string }{
		{`[` + eventA + `,{"ph":"B","name":"`, `"},` + eventB + `]`},
		{`{"x":"`, `","traceEvents":[` + eventB + `]}`},
		{`{"`, `":1,"traceEvents":[` + eventB + `]}`},
	} {
		in := io.MultiReader(strings.NewReader(c.before), &repeat{n: size}, strings.NewReader(c.after))
		var n int64
		var warned int
		var last string
		r, err := chromium.NewReader(in, &chromium.Options{Outside: counter{&n}, Warn: func(*chromium.FormatError) { warned++ }, MaxEventSize: 1 << 20})
		require.NoError(t, err)
		for ev, err := range r.All() {
			require.NoError(t, err)
			n += int64(len(ev.Lead) + len(ev.Raw))
			last = string(ev.Raw)
		}
		assert.Equal(t, eventB, last)
		assert.Equal(t, size+int64(len(c.before)+len(c.after)), n)
	}
	// Without its end the string is closed.
	var out bytes.Buffer
	r, err := chromium.NewReader(io.MultiReader(strings.NewReader(`{"traceEvents":[],"x":["`), &repeat{n: 3 << 20}), &chromium.Options{Outside: &out})
	require.NoError(t, err)
	var ev chromium.Event
	require.ErrorIs(t, r.Read(&ev), io.ErrUnexpectedEOF)
	assert.True(t, json.Valid(out.Bytes()))
}

type repeat struct{ n int64 }

func (r *repeat) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), r.n))
	for i := range p[:n] {
		p[i] = "abc\\\\\\n defg"[i%12]
	}
	if n > 12 {
		n -= n % 12
	}
	r.n -= int64(n)
	return n, nil
}

type counter struct{ n *int64 }

func (c counter) Write(p []byte) (int, error) {
	*c.n += int64(len(p))
	return len(p), nil
}

func TestStackFrames(t *testing.T) {
	frames := `"stackFrames": {"0": {"name": "r\u003c", "category": ""}, "1": {"category": "m", "x": [1], "name": "a", "parent": 0}, "2": {"name":"b","parent":"1"}}`
	for _, in := range []string{
		`{"traceEvents": [` + eventA + `], ` + frames + `}`,
		`{` + frames + `, "traceEvents": [` + eventA + `]}`,
	} {
		var out bytes.Buffer
		var got []string
		w := chromium.NewWriter(&out)
		r, err := chromium.NewReader(strings.NewReader(in), &chromium.Options{
			Outside: w.Outside(),
			StackFrame: func(f *chromium.StackFrame) error {
				got = append(got, fmt.Sprintf("%s|%s|%s|%s", f.ID, f.Name, f.Category, f.Parent))
				assert.Equal(t, `"`+string(f.ID), in[f.Offset:f.Offset+1+int64(len(f.ID))])
				return nil
			},
			StackFramesEnd: func(n int) error {
				_, err := fmt.Fprintf(w.Outside(), `, "%d": {"name": "new"}`, n)
				return err
			},
		})
		require.NoError(t, err)
		for ev, err := range r.All() {
			require.NoError(t, err)
			require.NoError(t, w.Write(ev))
		}
		assert.Equal(t, []string{`0|r\u003c||`, `1|a|m|0`, `2|b||"1"`}, got)
		assert.Equal(t, strings.Replace(in, `"parent":"1"}}`, `"parent":"1"}, "3": {"name": "new"}}`, 1), out.String())
	}
}

// A key may stand twice. Each table begins anew, and what only resembles its key is one of its own.
func TestStackFramesTwice(t *testing.T) {
	const frame = `{"name":"x"}`
	for _, tail := range []string{
		`"stackFrames":{"1":` + frame + `},"stackFrames":{"2":` + frame + `, "3":` + frame + `}`,
		`"stackFrames":{"1":` + frame + `},"stackFrames":{}`,
		`"stackFrames":{"1":` + frame + `},"stackFrame":{"2":` + frame + `}`,
	} {
		in := `{"traceEvents":[` + eventA + `],` + tail + `}`
		c := runCopy(strings.NewReader(in), chromium.Options{})
		require.NoError(t, c.err)
		assert.Empty(t, c.warned, tail)
		assert.Equal(t, in, c.out)

		var b bytes.Buffer
		w := chromium.NewWriter(&b)
		r, err := chromium.NewReader(strings.NewReader(in), &chromium.Options{Outside: w.Outside(), StackFramesEnd: func(n int) error {
			sep := ","
			if n == 0 {
				sep = ""
			}
			_, err := w.Outside().Write([]byte(sep + `"9":` + frame))
			return err
		}})
		require.NoError(t, err)
		for ev, err := range r.All() {
			require.NoError(t, err)
			require.NoError(t, w.Write(ev))
		}
		assert.True(t, json.Valid(b.Bytes()), b.String())
	}
}

func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := chromium.NewWriter(&out)
	require.NoError(t, w.Insert([]byte(eventA)))
	require.NoError(t, w.Insert([]byte(eventB)))
	require.NoError(t, w.Close())
	assert.Equal(t, `{"traceEvents":[`+eventA+`, `+eventB+`],"displayTimeUnit":"ms"}`+"\n", out.String())

	out.Reset()
	require.NoError(t, chromium.NewWriter(&out).Close())
	assert.Equal(t, `{"traceEvents":[],"displayTimeUnit":"ms"}`+"\n", out.String())
}

// Each event is kept (k), dropped (d), or kept with one inserted before (i) or
// behind (b).
func TestEdits(t *testing.T) {
	ev := func(n string) string { return `{"ph":"` + n + `"}` }
	for _, c := range []struct{ edit, want string }{
		{"kkk", `[ 1,` + "\n" + `2,` + "\n" + `3 ]`},
		{"dkk", `[` + "\n" + `2,` + "\n" + `3 ]`},
		{"ddk", `[` + "\n" + `3 ]`},
		{"ddd", `[ ]`},
		{"kdk", `[ 1,` + "\n" + `3 ]`},
		{"kkd", `[ 1,` + "\n" + `2 ]`},
		{"ikk", `[ +, 1,` + "\n" + `2,` + "\n" + `3 ]`},
		{"dik", `[` + "\n" + `+,` + "\n" + `2,` + "\n" + `3 ]`},
		{"kki", `[ 1,` + "\n" + `2,` + "\n" + `+,` + "\n" + `3 ]`},
		{"kkb", `[ 1,` + "\n" + `2,` + "\n" + `3,` + "\n" + `+ ]`},
		{"bkk", `[ 1, +,` + "\n" + `2,` + "\n" + `3 ]`},
	} {
		in := `[ ` + ev("1") + ",\n" + ev("2") + ",\n" + ev("3") + ` ]`
		var out bytes.Buffer
		w := chromium.NewWriter(&out)
		r, err := chromium.NewReader(strings.NewReader(in), &chromium.Options{Outside: w.Outside()})
		require.NoError(t, err)
		i := 0
		for e, err := range r.All() {
			require.NoError(t, err)
			switch c.edit[i] {
			case 'd':
				w.Drop(e)
			case 'i':
				require.NoError(t, w.InsertBefore(e, []byte(ev("+"))))
				require.NoError(t, w.Write(e))
			case 'b':
				require.NoError(t, w.Write(e))
				require.NoError(t, w.Insert([]byte(ev("+"))))
			default:
				require.NoError(t, w.Write(e))
			}
			i++
		}
		got := out.String()
		got = strings.ReplaceAll(strings.ReplaceAll(got, `{"ph":"`, ""), `"}`, "")
		assert.Equal(t, c.want, got, c.edit)
		assert.True(t, json.Valid(out.Bytes()), c.edit)
	}
}

// A number or word beside the events that is larger than any buffer is passed on if it is a number,
// else something is that is JSON; it costs no event.
func TestLargeLiterals(t *testing.T) {
	const n = 3 << 20
	digits := strings.Repeat("12345678", n/8)
	for name, c := range map[string]struct {
		text  string
		whole bool // it is passed on as it is
	}{
		"digits":              {digits, true},
		"a negative number":   {"-" + digits, true},
		"digits, then a word": {digits + "x" + digits, false},
		"a word":              {strings.Repeat("x", n), false},
		"leading zeros":       {"00" + digits, false},
		"a fraction":          {"0." + digits, false}, // only of digits it is known that they may go on
	} {
		for _, read := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader} {
			in := `{"a":` + c.text + `,"traceEvents":[` + eventA + `,` + eventB + `],"b":1}`
			got := runCopy(read(strings.NewReader(in)), chromium.Options{MaxEventSize: 1 << 16})
			require.NoError(t, got.err, name)
			assert.Equal(t, []string{eventA, eventB}, got.raws, name)
			require.True(t, json.Valid([]byte(got.out)), "%s: %.40s", name, got.out)
			assert.True(t, strings.HasSuffix(got.out, `,"traceEvents":[`+eventA+`,`+eventB+`],"b":1}`), name)
			if c.whole {
				assert.True(t, got.out == in, "%s is not passed on as it is", name)
				assert.Empty(t, got.warned, name)
			}
		}
		cut := runCopy(strings.NewReader(`{"a":`+c.text), chromium.Options{MaxEventSize: 1 << 16})
		assert.Error(t, cut.err, name)
	}
}
