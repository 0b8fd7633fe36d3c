package spans

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// events lists the events of a file as "B7 name @ts", and what was told first.
func events(t testing.TB, in string) (list []string, defect *SpeedscopeError, err error) {
	r, err := NewSpeedscopeReader(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(in)), nil },
		func(e *SpeedscopeError) {
			require.LessOrEqual(t, e.Offset, int64(len(in)))
			if defect == nil {
				defect = e
			}
		}, nil)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	var ev chromium.Event
	for {
		if err := r.Read(&ev); err != nil {
			if err == io.EOF {
				err = nil
			}
			return list, defect, err
		}
		list = append(list, fmt.Sprintf("%c%s %s @%v", ev.Phase, ev.TID, r.Name(ev.NameID), float64(ev.TS.NS)/1000))
	}
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
		{"two threads of one name", `{"shared":{"frames":[{"name":"A"}]},"profiles":[{"name":"Thread (2)","unit":"none","events":[{"type":"O","frame":0,"at":1}]},{"name":"Thread (2)","unit":"none","events":[]},{"name":"Thread (2)","unit":"none","events":[{"type":"O","frame":0,"at":1}]}]}`,
			[]string{"B2 A @1", "B4 A @1"}},
		{"tracefix's own", `{"exporter":"tracefix","shared":{"frames":[{"name":"m!A"},{"name":"[off CPU]"}]},"profiles":[{"name":"Thread 12","unit":"nanoseconds","events":[{"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":3}]}]}`,
			[]string{"M12 thread_name @0", "B12 A @0.001", "E12 A @0.003"}},
		{"the sum of the threads is no thread", `{"exporter":"tracefix","shared":{"frames":[{"name":"m!A"}]},"profiles":[{"name":"Thread 12","unit":"nanoseconds","events":[{"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":3}]},{"type":"sampled","name":"All threads","tracefix":{"sum":true},"unit":"nanoseconds","samples":[[0]],"weights":[2]}]}`,
			[]string{"M12 thread_name @0", "B12 A @0.001", "E12 A @0.003"}},
		{"with the process before", `{"shared":{"frames":[{"name":"A"}]},"profiles":[{"name":"Lab (3) Pool (30)","unit":"none","events":[{"type":"O","frame":0,"at":1}]},{"name":"Lab (3) Thread 24","unit":"none","events":[{"type":"O","frame":0,"at":1}]}]}`,
			[]string{"M30 thread_name @0", "B30 A @1", "M24 thread_name @0", "B24 A @1"}},
		{"keys in the order of the alphabet", `{"exporter":"x","profiles":[{"events":[{"at":0.1,"frame":0,"type":"O"},{"at":2,"frame":0,"type":"C"}],"name":"Thread (7)","type":"evented","unit":"milliseconds"}],"shared":{"frames":[{"name":"m!A"}]}}`,
			[]string{"B7 A @100", "E7 A @2000"}},
		{"the unit behind the events", `{"shared":{"frames":[{"name":"m!A"}]},"profiles":[{"events":[{"type":"O","frame":0,"at":1}],"name":"Thread (7)","unit":"seconds"},{"samples":[[0],[]],"weights":[1,2],"name":"Thread (8)","unit":"milliseconds"}]}`,
			[]string{"B7 A @1e+06", "B8 A @0", "E8 A @1000"}},
		{"nothing", `{"shared":{"frames":[]},"profiles":[]}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, defect, err := events(t, c.in)
			require.NoError(t, err)
			require.Nil(t, defect)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestEveryPrefixIsTold(t *testing.T) {
	all, _, _ := events(t, evented)
	for n := range len(evented) {
		got, defect, err := events(t, evented[:n])
		require.NoError(t, err, "prefix of %d", n)
		require.NotNil(t, defect, "prefix of %d", n)
		require.LessOrEqual(t, len(got), len(all))
		for i := range got {
			require.Equal(t, all[i], got[i], "prefix of %d", n)
		}
	}
}

// One wrong byte costs at most what it stands in, and is told where it can be seen.
func TestEveryByte(t *testing.T) {
	const events4 = 4
	lost := 0
	for at := strings.Index(evented, "[{\"type\":\"O\""); at < len(evented); at++ {
		for _, c := range []byte{0, '"', '{', '}', ']', '[', ',', 'x', 0xff} {
			if evented[at] == c || evented[at] == ' ' || evented[at] == '\n' {
				continue
			}
			got, _, err := events(t, evented[:at]+string([]byte{c})+evented[at+1:])
			require.NoError(t, err)
			if len(got) < events4-2 {
				lost++
				t.Logf("byte %d is %q: %v", at, c, got)
			}
		}
	}
	assert.LessOrEqual(t, lost, 10, "of a thousand")
}

// Files of dotnet-trace 3.1 have some numbers in quotes and close frames of one time in any order.
func TestOldExporter(t *testing.T) {
	want, _, _ := events(t, evented)
	quoted := strings.NewReplacer(`"startValue":0,"endValue":2`, `"startValue":"0","endValue":"2"`, `"at":1.5`, `"at":"1.5"`).Replace(evented)
	got, defect, err := events(t, quoted)
	require.NoError(t, err)
	assert.Nil(t, defect)
	assert.Equal(t, want, got)
	turned := strings.Replace(evented, `{"type":"C","frame":1,"at":1.5},{"type":"C","frame":0,"at":2}`, `{"type":"C","frame":0,"at":1.5},{"type":"C","frame":1,"at":1.5}`, 1)
	got, defect, err = events(t, turned)
	require.NoError(t, err)
	assert.Nil(t, defect)
	assert.Equal(t, []string{"B7 A @100", "B7 B<T> @1000", "E7 B<T> @1500", "E7 A @1500"}, got)
}

// What tells of damage is printed behind that word, and does not say it again.
func TestDamageIsSaidOnce(t *testing.T) {
	for _, in := range []string{
		strings.Replace(evented, "m!A", `m!\u00zz`, 1),
		strings.Replace(evented, `"type":"C"`, `"type":"X"`, 1),
		evented[:len(evented)-20],
	} {
		_, defect, err := events(t, in)
		require.NoError(t, err)
		require.NotNil(t, defect)
		assert.NotContains(t, defect.Error(), "damage")
		assert.Contains(t, defect.Error(), fmt.Sprintf("offset %d: ", defect.Offset))
	}
}

// An event without a time is damage, and happens no earlier than the one before it.
func TestMissingTime(t *testing.T) {
	got, defect, err := events(t, strings.Replace(evented, `"frame":1,"at":1.5}`, `"frame":1}`, 1))
	require.NoError(t, err)
	require.NotNil(t, defect)
	assert.Equal(t, []string{"B7 A @100", "B7 B<T> @1000", "E7 B<T> @1000", "E7 A @2000"}, got)
}

func TestDefects(t *testing.T) {
	for _, in := range []string{
		strings.Replace(evented, `"unit":"milliseconds",`, "", 1),
		strings.Replace(evented, `{"name":"n!B<T>"}`, "{}", 1),
		`{"shared":{"frames":[{"name":"A"}]},"profiles":[{"name":"Thread 1","unit":"none","type":"evented"}]}`,
		`{"shared":{"frames":[{"name":"A"}]},"profiles":[{"name":"Thread 1","unit":"none","type":"sampled","samples":[[0]]}]}`,
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
	_, err := NewSpeedscopeReader(func() (io.ReadCloser, error) {
		n++
		return io.NopCloser(io.MultiReader(strings.NewReader(evented[:60]), errReader{broken})), nil
	}, nil, nil)
	assert.ErrorIs(t, err, broken)
	assert.Equal(t, 1, n)
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func FuzzEvents(f *testing.F) {
	f.Add(evented)
	f.Add(`{"profiles":[{"name":"x","samples":[[0]],"weights":[1]}],"shared":{"frames":[{"name":"A"}]}}`)
	f.Fuzz(func(t *testing.T, in string) {
		_, _, err := events(t, in)
		require.NoError(t, err)
	})
}

// Of many profiles of one number each gets one of its own, and is looked at once.
func TestManyOfOneNumber(t *testing.T) {
	const n = 200_000
	r := &SpeedscopeReader{seen: map[speedscopeID]bool{}}
	for i := range n {
		r.free(int64(i%2), 7)
		r.threads = append(r.threads, chromium.Thread{})
	}
	assert.Len(t, r.seen, n)
}
