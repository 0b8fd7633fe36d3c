package speedscope

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func events(t testing.TB, in string) (string, *FormatError, error) {
	var defect *FormatError
	r, err := Events(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(in)), nil },
		func(e *FormatError) { defect = e })
	if err != nil {
		return "", nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), defect, err
}

// brief lists events as "B7 name @ts".
func brief(t testing.TB, doc string) []string {
	var tr struct {
		TraceEvents []struct {
			Ph, Name string
			TS       float64
			TID      int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(doc), &tr), doc)
	var l []string
	for _, e := range tr.TraceEvents {
		l = append(l, fmt.Sprintf("%s%d %s @%v", e.Ph, e.TID, e.Name, e.TS))
	}
	return l
}

const evented = `{"$schema":"https://www.speedscope.app/file-format-schema.json",
 "shared":{"frames":[{"name":"m!A"},{"name":"n!B<T>"}]},
 "profiles":[{"type":"evented","name":"Thread (7)","unit":"milliseconds","startValue":0,"endValue":2,
  "events":[{"type":"O","frame":0,"at":0.1},{"type":"O","frame":1,"at":1},{"type":"C","frame":1,"at":1.5},{"type":"C","frame":0,"at":2}]}]}`

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"evented", evented, []string{"B7 A @100", "B7 B<T> @1000", "E7 B<T> @1500", "E7 A @2000"}},
		{"sampled, frames last", `{"profiles":[{"type":"sampled","name":"main","unit":"seconds","samples":[[0],[0,1],[]],"weights":[1,2,3]}],"shared":{"frames":[{"name":"A"},{"name":"B"}]}}`,
			[]string{"M1 thread_name @0", "B1 A @0", "B1 B @1e+06", "E1 B @3e+06", "E1 A @3e+06"}},
		{"sampled, begun later", `{"shared":{"frames":[{"name":"A"}]},"profiles":[{"type":"sampled","name":"Thread 2","unit":"milliseconds","startValue":5,"samples":[[0]],"weights":[1]}]}`,
			[]string{"M2 thread_name @0", "B2 A @5000", "E2 A @6000"}},
		{"two threads of one name", `{"shared":{"frames":[{"name":"A"}]},"profiles":[{"name":"Thread (2)","unit":"none","events":[{"type":"O","frame":0,"at":1}]},{"name":"Thread (2)","events":[]},{"name":"Thread (2)","events":[{"type":"C","frame":0,"at":1}]}]}`,
			[]string{"B2 A @1", "E4 A @1"}},
		{"tracefix's own", `{"exporter":"tracefix","shared":{"frames":[{"name":"m!A"},{"name":"[off CPU]"}]},"profiles":[{"name":"Thread 12","unit":"nanoseconds","events":[{"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":3}]}]}`,
			[]string{"M12 thread_name @0", "B12 A @0.001", "E12 A @0.003"}},
		{"with the process before", `{"shared":{"frames":[{"name":"A"}]},"profiles":[{"name":"Lab (3) Pool (30)","unit":"none","events":[{"type":"O","frame":0,"at":1}]},{"name":"Lab (3) Thread 24","events":[{"type":"C","frame":0,"at":1}]}]}`,
			[]string{"M30 thread_name @0", "B30 A @1", "M24 thread_name @0", "E24 A @1"}},
		{"nothing", `{"shared":{"frames":[]},"profiles":[]}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, defect, err := events(t, c.in)
			require.NoError(t, err)
			require.Nil(t, defect)
			assert.Equal(t, c.want, brief(t, doc))
		})
	}
}

func TestEveryPrefixIsTold(t *testing.T) {
	for n := range len(evented) {
		doc, defect, err := events(t, evented[:n])
		require.NoError(t, err, "prefix of %d", n)
		require.NotNil(t, defect, "prefix of %d", n)
		assert.LessOrEqual(t, defect.Offset, int64(n))
		brief(t, doc) // valid all the same
	}
}

func TestDefects(t *testing.T) {
	for _, in := range []string{
		`[1]`, `{"profiles":{}}`, `{"shared":{"frames":[{"name":1}]}}`,
		`{"shared":{"frames":[{"name":"A"}]},"profiles":[{"events":[{"type":"O","frame":1,"at":0}]}]}`,
		`{"shared":{"frames":[{"name":"A"}]},"profiles":[{"events":[{"type":"O","frame":-1,"at":0}]}]}`,
		`{"shared":{"frames":[{"name":"A"}]},"profiles":[{"events":[{"type":"X","frame":0,"at":0}]}]}`,
		`{"shared":{"frames":[{"name":"A"}]},"profiles":[{"samples":[],"weights":[1]}]}`,
		`{"x":` + strings.Repeat("[", 100_000),
	} {
		_, defect, err := events(t, in)
		require.NoError(t, err)
		assert.NotNil(t, defect, "%.80s", in)
	}
}

func TestReadErrorIsNoDefect(t *testing.T) {
	broken := errors.New("disk on fire")
	n := 0
	_, err := Events(func() (io.ReadCloser, error) {
		n++
		return io.NopCloser(io.MultiReader(strings.NewReader(evented[:60]), errReader{broken})), nil
	}, nil)
	assert.ErrorIs(t, err, broken)
	assert.Equal(t, 1, n)
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func FuzzEvents(f *testing.F) {
	f.Add(evented)
	f.Add(`{"profiles":[{"name":"x","samples":[[0]],"weights":[1]}],"shared":{"frames":[{"name":"A"}]}}`)
	f.Fuzz(func(t *testing.T, in string) {
		doc, _, err := events(t, in)
		require.NoError(t, err)
		assert.True(t, json.Valid([]byte(doc)), doc)
	})
}
