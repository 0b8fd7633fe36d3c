package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestService(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	server := httptest.NewServer(http.HandlerFunc(repair))
	defer server.Close()
	trace, err := os.ReadFile("../../testdata/chain.nettrace.zst")
	require.NoError(t, err)
	var wait sync.WaitGroup
	for _, c := range []struct {
		body   string
		status int
		say    string
	}{
		{string(trace), http.StatusOK, ""},
		{string(trace), http.StatusOK, ""},
		{"hello", http.StatusUnprocessableEntity, "is not a trace that tracefix reads"},
		{"Nettrace", http.StatusUnprocessableEntity, "offset 8"},
		{string(trace[:8]), http.StatusUnprocessableEntity, "zstd"},
	} {
		wait.Go(func() {
			res, err := http.Post(server.URL, "application/octet-stream", strings.NewReader(c.body))
			if !assert.NoError(t, err) {
				return
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			assert.NoError(t, err)
			assert.Equal(t, c.status, res.StatusCode)
			if c.status == http.StatusOK {
				assert.True(t, json.Valid(body))
				assert.Equal(t, "0", res.Header.Get("X-Damages"))
			} else {
				assert.True(t, bytes.Contains(body, []byte(c.say)), string(body))
			}
		})
	}
	wait.Wait()
}
