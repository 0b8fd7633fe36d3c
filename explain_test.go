package tracefix_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

// explained lists the requests of a trace as Explain tells them.
func explained(t *testing.T, f *tracefix.File) (rows []string, told, answered int) {
	t.Helper()
	err := f.Explain(t.Context(), func(r *httpphases.Request) {
		rows = append(rows, fmt.Sprintf("%d %s %d %+v", r.ID, r.URL(), r.Duration, r.Why))
		if r.HasDuration != (r.Why != nil) {
			t.Errorf("request %d has a duration, %v, and an explanation, %v", r.ID, r.HasDuration, r.Why != nil)
		}
		if r.Why == nil {
			return
		}
		sum := int64(0)
		for _, ns := range r.Why.Time.Causes {
			sum += ns
		}
		assert.Equal(t, r.Duration, sum, "the causes of request %d add up to its duration", r.ID)
		assert.NotEmpty(t, r.Why.Steps)
		if told++; r.Why.Server != nil {
			answered++
			rows[len(rows)-1] = fmt.Sprintf("%d by %d", r.ID, r.Why.Server.ID) // and not the place in memory
		}
	}, func(s *httpphases.ServerRequest) {
		rows = append(rows, fmt.Sprintf("%d %s %d %+v", s.ID, s.Target, s.Duration, s.Why))
		if s.Why != nil {
			told++
		}
	})
	require.NoError(t, err)
	return rows, told, answered
}

// Explain tells all requests, each with where its time went, also where the trace is read again for them.
func TestExplain(t *testing.T) {
	nothingLeft(t)
	f, err := tracefix.Open(t.Context(), httpMore)
	require.NoError(t, err)
	defer f.Close()
	requests := 0
	require.NoError(t, f.Requests(t.Context(), func(*httpphases.Request) { requests++ }, func(*httpphases.ServerRequest) { requests++ }))
	once, told, answered := explained(t, f)
	assert.Len(t, once, requests)
	assert.Positive(t, told)
	assert.NotZero(t, f.Reading().Events)
	defer tracefix.ExplainAtOnce(10)()
	twice, _, again := explained(t, f)
	assert.Equal(t, once, twice)
	assert.Equal(t, answered, again)
}

// A request tells what was thrown while it was served, with what it was thrown for. The handler of
// /throw throws two for each of three, one around the other.
func TestExplainTellsExceptions(t *testing.T) {
	f, err := tracefix.Open(t.Context(), tracetest.Corpus(t, "dotnet10", "requests-short.nettrace"))
	require.NoError(t, err)
	defer f.Close()
	var want []string
	for i := range 3 {
		want = append(want, fmt.Sprintf("System.InvalidOperationException inner %d <- (1)", i),
			fmt.Sprintf("System.ApplicationException outer %d <- System.InvalidOperationException: inner %d (1)", i, i))
	}
	threw := 0
	require.NoError(t, f.Explain(t.Context(), nil, func(s *httpphases.ServerRequest) {
		if s.Target != "/throw/3" || s.Why == nil {
			return
		}
		threw++
		var got []string
		last := s.Start
		for _, x := range s.Why.Exceptions {
			got = append(got, strings.Join(strings.Fields(fmt.Sprintf("%s %s <- %s (%d)", x.Type, x.Message, x.Cause, x.Count)), " "))
			assert.True(t, last <= x.At && x.At <= s.Start+s.Duration, "an exception at %d of a request from %d for %d", x.At, s.Start, s.Duration)
			last = x.At
		}
		assert.Equal(t, want, got, "request %d", s.ID)
	}))
	assert.Greater(t, threw, 20)
}

// What ends Explain is its error, and nothing of it is left.
func TestExplainEnds(t *testing.T) {
	nothingLeft(t)
	f, err := tracefix.Open(t.Context(), httpMore)
	require.NoError(t, err)
	defer f.Close()
	for _, atOnce := range []int{10, 50000} {
		func() {
			defer tracefix.ExplainAtOnce(atOnce)()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			err := f.Explain(ctx, func(*httpphases.Request) {
				n++
				cancel()
			}, nil)
			if atOnce > 10 { // else the reading may be over
				assert.Equal(t, 1, n)
				assert.ErrorIs(t, err, context.Canceled)
			}
			assert.ErrorIs(t, f.Explain(ctx, nil, nil), context.Canceled)
			assert.Panics(t, func() { _ = f.Explain(t.Context(), func(*httpphases.Request) { panic("mine") }, nil) })
		}()
	}
	folded, err := tracefix.NewFile("x.folded", bytes.NewReader([]byte("a;b 1\n")))
	require.NoError(t, err)
	defer folded.Close()
	assert.ErrorContains(t, folded.Explain(t.Context(), nil, nil), "x.folded: is not a nettrace file")
}

// What a reading met can be asked of every kind of reading.
func TestReading(t *testing.T) {
	packed, err := os.Open(httpMore)
	require.NoError(t, err)
	defer packed.Close()
	r, err := zstd.NewReader(packed)
	require.NoError(t, err)
	defer r.Close()
	whole, err := io.ReadAll(r)
	require.NoError(t, err)
	f, err := tracefix.NewFile("cut", bytes.NewReader(whole[:len(whole)/2]))
	require.NoError(t, err)
	defer f.Close()
	assert.Zero(t, f.Reading())
	ctx := t.Context()
	var first tracefix.Reading
	for name, read := range map[string]func() error{
		"Profile":    func() error { _, err := f.Profile(ctx, nil); return err },
		"Rewrite":    func() error { _, err := f.Rewrite(ctx, io.Discard, nil, nil, false); return err },
		"Scan":       func() error { return f.Scan(ctx, consumer{}) },
		"Requests":   func() error { return f.Requests(ctx, nil, nil) },
		"Explain":    func() error { return f.Explain(ctx, nil, nil) },
		"Activities": func() error { _, err := f.Activities(ctx, &activity.Options{}); return err },
	} {
		mine := errors.New("mine")
		require.ErrorIs(t, f.Scan(ctx, consumer{event: func(*nettrace.Event) error { return mine }}), mine)
		require.NoError(t, read(), name)
		met := f.Reading()
		for i := range met.Damage {
			met.Damage[i].Time = 0 // only some know it
		}
		if first.Events == 0 {
			first = met
		}
		assert.Equal(t, first, met, name)
		assert.NotZero(t, met.Events, name)
		assert.Positive(t, met.Damages, name)
		assert.Len(t, met.Damage, met.Damages, name)
	}
}
