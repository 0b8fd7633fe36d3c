package spans

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/pass"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// small is a file of two threads with a spike on the first.
func small(t testing.TB) []byte {
	var b bytes.Buffer
	d := tracetest.NewDotnetWriter(&b)
	d.Thread(1)
	for i, n := range []string{b90, d120, b90} {
		s := stack(n)
		d.Sample(float64(10+i), 1, withRoots(1, s[max(0, len(s)-100):]))
	}
	d.Thread(2)
	d.Sample(5, 1, withRoots(2, stack("Root <x>&'y'")))
	require.NoError(t, d.Close())
	return b.Bytes()
}

// A file that is cut anywhere gives a valid one with all events that were whole.
func TestCutAnywhere(t *testing.T) {
	in := small(t)
	step := 101
	if testing.Short() {
		step = 1009
	}
	for n := 1; n < len(in); n += step {
		var warned int
		tr, err := Read(context.Background(), opener(in[:n]), &Options{Warn: func(*chromium.FormatError, int64) { warned++ }})
		require.NoError(t, err, "%d bytes", n)
		require.NotZero(t, warned, "%d bytes: silence", n)
		pass.FixStacks(tr.Profile, 0.9)
		out := rewriteBytes(t, tr, false)
		require.True(t, json.Valid(out), "%d bytes", n)
		repairs := 0
		for _, th := range tr.Profile.Threads {
			repairs += th.Repairs.Len()
		}
		if repairs == 0 {
			whole := bytes.Count(in[:n], []byte(`"sf": `))
			if cutInEvent(in[:n]) {
				whole--
			}
			require.Equal(t, whole, len(rawEvents(t, out, "")), "%d bytes", n)
		}
	}
}

func cutInEvent(in []byte) bool {
	open := bytes.LastIndex(in, []byte(`{"name"`))
	return open >= 0 && bytes.IndexByte(in[open:], '}') < 0 && bytes.Contains(in[open:], []byte(`"sf": `)) && !bytes.Contains(in, []byte("stackFrames"))
}

// A broken event is left out, and the spans around it heal.
func TestBrokenEvents(t *testing.T) {
	in := small(t)
	evs := rawsOf(t, in)
	for _, c := range []struct {
		name string
		at   int
		text string
	}{
		{"a begin", 40, `{"name": "m!a", "cat": BROKEN}`},
		{"an end", 96 + 4, `{"name": "x", "ph": "E", "ts": `},
		{"the first", 0, `{]`},
		{"the last", len(evs) - 1, `{"name": "x" "y"}`},
		{"NUL bytes", 200, strings.Repeat("\x00", 300)},
		{"no object", 200, `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := append([]raw(nil), evs...)
			b[c.at].text = c.text
			var warned []error
			tr, err := Read(context.Background(), opener(assemble(t, in, b, ", ")), &Options{Warn: func(fe *chromium.FormatError, _ int64) { warned = append(warned, fe) }})
			require.NoError(t, err)
			require.NotEmpty(t, warned)
			pass.FixStacks(tr.Profile, 0.9)
			out := rewriteBytes(t, tr, false)
			require.True(t, json.Valid(out))
			assert.GreaterOrEqual(t, len(rawEvents(t, out, "")), 150)
			d := parse(t, out)
			assert.NotEmpty(t, d.StackFrames)
			again, _ := repairBytes(t, out, false)
			assert.True(t, bytes.Equal(out, again))
		})
	}
}

// What was unpacked of a cut compressed file is used; a failing disk is an error.
func TestFailingReader(t *testing.T) {
	in := small(t)
	boom := errors.New("boom")
	open := func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(in[:len(in)/2]), failing{boom})), nil
	}
	_, err := Read(context.Background(), open, nil)
	require.ErrorIs(t, err, boom)

	var warned []error
	tr, err := Read(context.Background(), open, &Options{Salvage: true, Warn: func(fe *chromium.FormatError, _ int64) { warned = append(warned, fe) }})
	require.NoError(t, err)
	require.NotEmpty(t, warned)
	assert.ErrorIs(t, warned[0], boom)
	assert.True(t, json.Valid(rewriteBytes(t, tr, false)))
}

// What does not come of the stored bytes is no cut file.
func TestFailureIsNoCut(t *testing.T) {
	in := small(t)
	for _, err := range []error{
		&fs.PathError{Op: "read", Path: "a.json.gz", Err: errors.New("input/output error")},
		fmt.Errorf("a.json.gz: %w", input.ErrTooLarge), context.DeadlineExceeded, os.ErrDeadlineExceeded,
	} {
		_, got := Read(context.Background(), func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(in[:len(in)/2]), failing{err})), nil
		}, &Options{Salvage: true})
		assert.ErrorIs(t, got, err)
	}
}

// A disk that fails while the threads out of order are read once more is told.
func TestSecondReadingFails(t *testing.T) {
	const in = `[{"ph":"B","name":"a","ts":5,"pid":1,"tid":1},{"ph":"B","name":"b","ts":4,"pid":1,"tid":1},`
	readings := 0
	_, err := Read(context.Background(), func() (io.ReadCloser, error) {
		if readings++; readings == 2 {
			return io.NopCloser(io.MultiReader(strings.NewReader(in[:len(in)/2]), failing{io.ErrNoProgress})), nil
		}
		return io.NopCloser(strings.NewReader(in)), nil
	}, nil)
	assert.Equal(t, 2, readings)
	assert.ErrorIs(t, err, io.ErrNoProgress)
}

type failing struct{ err error }

// A file that is another one when it is read again is no copy of the trace, wherever it ends
// and whether anything is repaired in it.
func TestChangedMeanwhile(t *testing.T) {
	cut, _, _ := walk(t, tracetest.Walk{Seed: 3, Threads: 2, Bytes: 1 << 18, Deep: 0.5})
	none, _, _ := walk(t, tracetest.Walk{Seed: 3, Threads: 2, Bytes: 1 << 18})
	for _, in := range [][]byte{cut, none} {
		size := len(in)
		tr, err := Read(context.Background(), func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(in[:size])), nil
		}, nil)
		require.NoError(t, err)
		pass.FixStacks(tr.Profile, 0.9)
		for _, size = range []int{10, len(in) / 3, len(in) / 2, len(in) - 1000, len(in) - 1} {
			err := tr.Rewrite(context.Background(), io.Discard, false)
			assert.ErrorIs(t, err, input.ErrChanged, "%d of %d", size, len(in))
		}
		size = len(in)
		assert.NoError(t, tr.Rewrite(context.Background(), io.Discard, false))
	}
}

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestCanceled(t *testing.T) {
	in := small(t)
	ctx, cancel := context.WithCancel(context.Background())
	tr := readBytes(t, in, nil)
	cancel()
	_, err := Read(ctx, opener(in), nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, tr.Rewrite(ctx, io.Discard, false), context.Canceled)
}

// Switching between the synthetic frames (Activities) and (Non-Activities) splits all
// spans and is no cut.
func TestActivities(t *testing.T) {
	var b bytes.Buffer
	d := tracetest.NewDotnetWriter(&b)
	d.Thread(1)
	for i := range 6 {
		s := withRoots(1, stack("Root a1..a96"))
		if i%2 == 1 {
			s[1] = "(Activities)"
		}
		d.Sample(float64(10+i), 1, s)
	}
	require.NoError(t, d.Close())
	out, tr := repairBytes(t, b.Bytes(), false)
	assert.Zero(t, tr.Facts.Cut)
	assert.True(t, bytes.Equal(b.Bytes(), out))
}

// FuzzRepair holds any input to what a repair promises.
func FuzzRepair(f *testing.F) {
	f.Add([]byte(`{"traceEvents":[{"name":"Thread (1)","ph":"B","ts":1,"pid":0,"tid":1,"sf":1},{"name":"a","ph":"B","ts":1,"pid":0,"tid":1,"sf":2},{"name":"b","ph":"B","ts":1,"pid":0,"tid":1,"sf":3},{"name":"CPU_TIME","ph":"B","ts":1,"pid":0,"tid":1,"sf":4},{"name":"CPU_TIME","ph":"E","ts":2,"pid":0,"tid":1,"sf":4},{"name":"b","ph":"E","ts":2,"pid":0,"tid":1,"sf":3},{"name":"a","ph":"E","ts":2,"pid":0,"tid":1,"sf":2},{"name":"b","ph":"B","ts":2,"pid":0,"tid":1,"sf":3},{"name":"c","ph":"B","ts":2,"pid":0,"tid":1,"sf":5},{"name":"c","ph":"E","ts":3,"pid":0,"tid":1,"sf":5},{"name":"b","ph":"E","ts":3,"pid":0,"tid":1,"sf":3},{"name":"Thread (1)","ph":"E","ts":3,"pid":0,"tid":1,"sf":1}],"stackFrames":{"1":{"name":"Thread (1)"},"2":{"name":"a","category":"m"}}}`))
	f.Add([]byte(`{"traceEvents":[{"ph":"M","ts":0,"pid":1,"tid":1,"name":"thread_name","args":{"name":"t","tracefix":{"holds":"samples","cut":1,"cuts":[2000,1000,3,6]}}},{"ph":"B","ts":1,"pid":1,"tid":1,"name":"a"},{"ph":"B","ts":1,"pid":1,"tid":1,"name":"b"},{"ph":"B","ts":1,"pid":1,"tid":1,"name":"c"},{"ph":"E","ts":2,"pid":1,"tid":1,"name":"c"},{"ph":"E","ts":2,"pid":1,"tid":1,"name":"b"},{"ph":"E","ts":2,"pid":1,"tid":1,"name":"a"},{"ph":"B","ts":2,"pid":1,"tid":1,"name":"x"},{"ph":"B","ts":2,"pid":1,"tid":1,"name":"b"},{"ph":"B","ts":2,"pid":1,"tid":1,"name":"c"},{"ph":"E","ts":3,"pid":1,"tid":1,"name":"c"},{"ph":"E","ts":3,"pid":1,"tid":1,"name":"b"},{"ph":"E","ts":3,"pid":1,"tid":1,"name":"x"},{"ph":"B","ts":3,"pid":1,"tid":1,"name":"a"},{"ph":"E","ts":4,"pid":1,"tid":1,"name":"a"}]}`))
	f.Add([]byte(`[{"name":"Thread (1)","ph":"B","ts":9},{"name":"a","ph":"B","ts":"1.5"},{"name":"b","ph":"B","ts":1e0},{"ph":"E","ts":2},{"name":"a","ph":"E","ts":0}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		run := func(in []byte) ([]byte, *Trace, int) {
			damage := 0
			tr, err := Read(context.Background(), opener(in), &Options{MaxDepth: 2, Weighted: len(in)%2 == 0, Warn: func(*chromium.FormatError, int64) { damage++ }})
			if err != nil {
				return nil, nil, damage
			}
			pass.FixStacks(tr.Profile, 0.9)
			var out bytes.Buffer
			if err := tr.Rewrite(context.Background(), &out, false); err != nil {
				t.Fatal(err)
			}
			return out.Bytes(), tr, damage
		}
		out, tr, damage := run(in)
		if tr == nil {
			return
		}
		if damage == 0 && !tr.Facts.BOM {
			// Every other event is there, in its order.
			if len(tr.zones) == 0 && (tr.Facts.Form == chromium.FormObject || tr.Facts.Form == chromium.FormArray) && !bytes.Equal(in, out) {
				t.Fatalf("nothing to repair, yet\n%q\nbecame\n%q", in, out)
			}
		}
		if !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("\n%q\nbecame invalid:\n%q", in, out)
		}
	})
}

// JSON that is not a trace is refused, and not taken for a damaged trace and copied.
func TestForeignJSON(t *testing.T) {
	for in, refused := range map[string]bool{
		`{}`:                                  true,
		`{"name":"x","dependencies":{}}`:      true,
		`{"traceEvents":[]}`:                  false,
		`{"traceEvents":null}`:                false,
		`{"stackFrames":{},"traceEvents":[]}`: false,
		`[]`:                                  false,
	} {
		_, err := Read(context.Background(), opener([]byte(in)), nil)
		if refused {
			assert.ErrorIs(t, err, chromium.ErrNoTrace, in)
		} else {
			assert.NoError(t, err, in)
		}
	}
}
