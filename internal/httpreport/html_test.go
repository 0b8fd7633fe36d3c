package httpreport

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// TestPageOfExtremes: a page tells no time where there is no request, and draws one that is shorter than the steps
// in which a browser counts at its time.
func TestPageOfExtremes(t *testing.T) {
	b := tracetest.NewBrowser(t, 1200, 700)
	shown := func(list ...*httpphases.Request) (s string) {
		openPage(t, b, list)
		b.Eval(`document.getElementById("sub").textContent`, &s)
		return s
	}
	assert.Equal(t, "0 requests made, 0 hosts", shown())
	assert.Equal(t, "1 requests made, 0 hosts, 0.000 ms", shown(&httpphases.Request{ID: 1, HasDuration: true}))
	assert.Equal(t, "1 requests made, 0 hosts, 0.001 ms", shown(&httpphases.Request{ID: 1, Start: 1 << 62, Duration: 1000, HasDuration: true}))
}

// TestPageOfWebSockets: how long they were open is in no percentile of all, and a long axis has the times of a clock.
func TestPageOfWebSockets(t *testing.T) {
	b := tracetest.NewBrowser(t, 1200, 700)
	openPage(t, b, nil,
		&httpphases.ServerRequest{ID: 1, Method: "GET", Target: "/a", Route: "/a", Status: 200, Duration: 5e6, HasDuration: true},
		&httpphases.ServerRequest{ID: 2, Method: "GET", Target: "/a", Route: "/a", Status: 101, Duration: 9 * 3600e9, HasDuration: true})
	var s string
	b.Eval(`document.getElementById("quick").textContent`, &s)
	assert.Equal(t, "1 served: p50 5.000 ms · p90 5.000 ms · p95 5.000 ms · p99 5.000 ms · longest 5.000 ms, without 1 that became WebSockets", s)
	b.Eval(`[...document.querySelectorAll("#axis span")].map(e => e.textContent).join()`, &s)
	assert.Equal(t, "0 min,2 h,4 h,6 h,8 h", s)
}

// openPage opens the page of such requests.
func openPage(t *testing.T, b *tracetest.Browser, made []*httpphases.Request, served ...*httpphases.ServerRequest) {
	t.Helper()
	var out bytes.Buffer
	w := newHTML(&out, &Options{})
	for _, r := range made {
		require.NoError(t, w.Request(r))
	}
	for _, r := range served {
		require.NoError(t, w.Server(r))
	}
	require.NoError(t, w.Close(&Summary{Requests: len(made), Shown: len(made)}))
	page := filepath.Join(t.TempDir(), "requests.html")
	require.NoError(t, os.WriteFile(page, out.Bytes(), 0o600))
	b.Open("file://"+filepath.ToSlash(page), `document.getElementById("sub").textContent`)
}
