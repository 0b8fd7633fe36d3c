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
		var out bytes.Buffer
		w := newHTML(&out, &Options{})
		for _, r := range list {
			require.NoError(t, w.Request(r))
		}
		require.NoError(t, w.Close(&Summary{Requests: len(list), Shown: len(list)}))
		page := filepath.Join(t.TempDir(), "requests.html")
		require.NoError(t, os.WriteFile(page, out.Bytes(), 0o600))
		b.Open("file://"+filepath.ToSlash(page), `document.getElementById("sub").textContent`)
		b.Eval(`document.getElementById("sub").textContent`, &s)
		return s
	}
	assert.Equal(t, "0 requests made, 0 hosts", shown())
	assert.Equal(t, "1 requests made, 0 hosts, 0.000 ms", shown(&httpphases.Request{ID: 1, HasDuration: true}))
	assert.Equal(t, "1 requests made, 0 hosts, 0.001 ms", shown(&httpphases.Request{ID: 1, Start: 1 << 62, Duration: 1000, HasDuration: true}))
}
