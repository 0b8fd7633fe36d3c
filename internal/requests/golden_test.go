package requests

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/httpreport"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Every format keeps its fields, values and texts: of requests over a new connection with TLS, to a
// scheme that there is none of, with a second try, with redirects; and of some that were served.
func TestFormatsAreAsTheyWere(t *testing.T) {
	rec, served := small(t), loadFile(t, filepath.Join("testdata", "net31-more.nettrace.zst")).served
	rec.rows = slices.DeleteFunc(rec.rows, func(r *httpphases.Request) bool { return !slices.Contains([]int{16, 26, 27, 54}, int(r.ID)) })
	require.Len(t, rec.rows, 4)
	rec.served = served[:2]
	for i := range httpreport.Formats {
		f := &httpreport.Formats[i]
		if f.Name == "html" || f.Name == "chromium" {
			continue // browsers and readers of Chromium JSON look at these
		}
		t.Run(f.Name, func(t *testing.T) {
			got := write(t, rec, f.Name)
			name := filepath.Join("testdata", "requests."+f.Name)
			if *update {
				require.NoError(t, os.WriteFile(name, got, 0o666))
			}
			want, err := os.ReadFile(name)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
		})
	}
}
