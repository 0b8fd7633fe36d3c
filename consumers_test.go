package tracefix_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/nettrace"
)

const httpMore = "internal/requests/testdata/http-more.nettrace.zst"

// A consumer is a Consumer of functions, which may be nil.
type consumer struct {
	begin func(*nettrace.Reader)
	event func(*nettrace.Event) error
	end   func()
}

func (c consumer) Begin(r *nettrace.Reader) {
	if c.begin != nil {
		c.begin(r)
	}
}

func (c consumer) Event(ev *nettrace.Event) error {
	if c.event != nil {
		return c.event(ev)
	}
	return nil
}

func (c consumer) End() {
	if c.end != nil {
		c.end()
	}
}

// nothingLeft looks at the end of a test that no goroutine and no temporary file is left of it.
func nothingLeft(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if n := runtime.NumGoroutine(); n > before {
			all := make([]byte, 1<<16)
			t.Errorf("%d goroutines are left:\n%s", n-before, all[:runtime.Stack(all, true)])
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, left, "files are left")
	})
}

// Where a consumer panics, those beside it end: no goroutine of theirs is left.
func TestPanicOfAConsumerEndsTheOthers(t *testing.T) {
	events := 0
	for name, c := range map[string]consumer{
		"begin": {begin: func(*nettrace.Reader) { panic("mine") }},
		"event": {event: func(*nettrace.Event) error {
			if events++; events == 500 {
				panic("mine")
			}
			return nil
		}},
		"end": {end: func() { panic("mine") }},
	} {
		t.Run(name, func(t *testing.T) {
			nothingLeft(t)
			events = 0
			assert.Panics(t, func() { _ = tracefix.Scan(t.Context(), httpMore, tracefix.NewRequestScanner(nil, nil), c) })
			events = 0
			assert.Panics(t, func() {
				_, _ = tracefix.Read(t.Context(), httpMore, &tracefix.ReadOptions{
					Work: true, Tracks: []string{"http"}, Also: []tracefix.Consumer{tracefix.NewRequestScanner(nil, nil), c},
				})
			})
		})
	}
}

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("mine") }

func TestPanicOfAReaderLeavesNoFile(t *testing.T) {
	nothingLeft(t)
	assert.PanicsWithValue(t, "mine", func() { _, _ = tracefix.NewFile("upload", panics{}) })
}

// FailNow of a test ends its goroutine, which may be one of the library's.
func TestFailNowInACallee(t *testing.T) {
	n := 0
	for name, c := range map[string]tracefix.Consumer{
		"event": consumer{event: func(*nettrace.Event) error {
			if n++; n == 500 {
				runtime.Goexit()
			}
			return nil
		}},
		"request": tracefix.NewRequestScanner(func(*httpphases.Request) { runtime.Goexit() }, nil),
	} {
		for _, processors := range []int{1, 4} {
			t.Run(fmt.Sprint(name, processors), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
				nothingLeft(t)
				n = 0
				returned, done := false, make(chan bool)
				go func() {
					defer close(done)
					_ = tracefix.Scan(context.Background(), httpMore, c)
					returned = true
				}()
				select {
				case <-done:
					assert.False(t, returned, "it is the caller's")
				case <-time.After(20 * time.Second):
					t.Fatal("it hangs")
				}
			})
		}
	}
}

// Scanners can be asked after a reading that failed, and take another one.
func TestScannersAfterAFailure(t *testing.T) {
	requests, activities := tracefix.NewRequestScanner(nil, nil), tracefix.NewActivityScanner(nil)
	assert.Zero(t, requests.Stats())
	assert.Empty(t, activities.Tree().Rows)

	mine := errors.New("mine")
	err := tracefix.Scan(t.Context(), httpMore, requests, activities, consumer{event: func(*nettrace.Event) error { return mine }})
	require.ErrorIs(t, err, mine)
	assert.Empty(t, activities.Tree().Rows)

	require.NoError(t, tracefix.Scan(t.Context(), httpMore, requests, activities))
	rows, stats := len(activities.Tree().Rows), requests.Stats()
	assert.NotZero(t, rows)
	require.NoError(t, tracefix.Scan(t.Context(), httpMore, requests, activities))
	assert.Len(t, activities.Tree().Rows, rows, "those of the last reading")
	assert.Equal(t, stats, requests.Stats())
}

// A consumer may say more with ErrStop, and the list of consumers stays the caller's.
func TestScanLeavesItsArguments(t *testing.T) {
	n := 0
	stops := consumer{event: func(*nettrace.Event) error {
		n++
		return fmt.Errorf("seen: %w", nettrace.ErrStop)
	}}
	third := tracefix.NewActivityScanner(nil)
	all := []tracefix.Consumer{stops, consumer{}, third}
	require.NoError(t, tracefix.Scan(t.Context(), httpMore, all[:1]...))
	assert.Equal(t, 1, n)
	require.NoError(t, tracefix.Scan(t.Context(), httpMore, all[:2]...))
	assert.Same(t, third, all[2])
}

// Rewrite refuses options that say nothing, as Profile does.
func TestRewriteChecksItsOptions(t *testing.T) {
	f, err := tracefix.Open(t.Context(), httpMore)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Rewrite(t.Context(), io.Discard, &tracefix.ReadOptions{MaxDepth: -1}, nil, false)
	assert.ErrorContains(t, err, "MaxDepth")
}
