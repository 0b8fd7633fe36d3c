package chromium_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/chromium"
)

// A Reader that nobody made says so, and does not read nothing for ever.
func TestZeroReader(t *testing.T) {
	var r chromium.Reader
	var ev chromium.Event
	require.ErrorContains(t, r.Read(&ev), "NewReader")
	for _, err := range r.All() {
		require.ErrorContains(t, err, "NewReader")
	}
}
