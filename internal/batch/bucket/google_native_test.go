//go:build gcs

package bucket

import (
	"strings"
	"testing"
)

func TestGoogleErrors(t *testing.T) {
	nativeErrors(t, "Google Cloud Storage", func(address string) string {
		t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(address, "http://"))
		return "gs://data/key?anonymous=true"
	})
}
