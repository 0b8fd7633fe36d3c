package view

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServesFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	write(filepath.Join(dir, "a b.nettrace"), "one")
	write(filepath.Join(dir, "sub", "c&i.json.gz"), "two")
	write(filepath.Join(dir, "notes.doc"), "no trace")
	write(filepath.Join(dir, "a.http.ndjson"), "no trace")
	write(filepath.Join(dir, "bad.nettrace"), "broken")
	write(filepath.Join(dir, "profile.pb"), "four")
	write(filepath.Join(dir, "batch-report.html"), "<p>overview")
	write(filepath.Join(dir, "sub", "index.html"), "<p>index")
	write(filepath.Join(outside, "secret.nettrace"), "secret")
	linked := os.Symlink(filepath.Join(outside, "secret.nettrace"), filepath.Join(dir, "link.nettrace")) == nil &&
		os.Symlink(outside, filepath.Join(dir, "out")) == nil

	show := func(what, trace, out string) error {
		b, err := os.ReadFile(trace)
		if err != nil {
			return err
		}
		if string(b) == "broken" {
			return errors.New("bad.nettrace: offset 0: no trace")
		}
		return os.WriteFile(out, append([]byte(what), b...), 0o600)
	}
	f, err := Serve(dir, Pages{
		Kind: func(file string) string { // the content decides
			if b, err := os.ReadFile(file); err != nil || string(b) == "no trace" {
				return ""
			}
			return "nettrace"
		},
		View: func(_ context.Context, trace, out string) error { return show("page of ", trace, out) },
		Requests: func(_ context.Context, trace, stacks, out string) error {
			return show("requests, stacks at "+stacks+", of ", trace, out)
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	base := f.Address()
	assert.True(t, strings.HasPrefix(base, "http://127.0.0.1:"))
	ask := func(method, address, host string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, address, nil)
		require.NoError(t, err)
		if host != "" {
			r.Host = host
		}
		a, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(b)
	}
	get := func(name string) (int, string) { return ask("GET", base+name, "") }

	code, list := get("")
	assert.Equal(t, 200, code)
	assert.Contains(t, list, `a%20b.nettrace">a b.nettrace</a>`)
	assert.Contains(t, list, `sub/c&amp;i.json.gz">sub/c&amp;i.json.gz</a>`)
	for _, gone := range []string{"notes.doc", "a.http.ndjson", "secret", "link.nettrace"} {
		assert.NotContains(t, list, gone)
	}
	code, page := get("a%20b.nettrace")
	assert.Equal(t, 200, code)
	assert.Equal(t, "page of one", page)
	_, page = get("profile.pb")
	assert.Equal(t, "page of four", page, "the content says that it is a trace")
	_, page = get("a%20b.nettrace?page=requests")
	assert.Equal(t, "requests, stacks at ./a%20b.nettrace, of one", page)
	_, page = get("batch-report.html")
	assert.Equal(t, "<p>overview", page)
	code, page = get("sub/index.html")
	assert.Equal(t, 200, code)
	assert.Equal(t, "<p>index", page, "and not a list of the folder")
	text, err := http.Get(base + "a.http.ndjson") // to which the overview of --do http leads
	require.NoError(t, err)
	text.Body.Close()
	assert.Equal(t, 200, text.StatusCode)
	assert.Equal(t, "text/plain; charset=utf-8", text.Header.Get("Content-Type"))
	assert.Contains(t, text.Header.Get("Content-Security-Policy"), "sandbox")
	_, page = get("a.http.ndjson")
	assert.Equal(t, "no trace", page)
	code, page = get("bad.nettrace")
	assert.Equal(t, http.StatusUnprocessableEntity, code)
	assert.Contains(t, page, "no trace")

	// A name in another encoding, where the file system takes it.
	if os.WriteFile(filepath.Join(dir, "latin\xe9.nettrace"), []byte("five"), 0o600) == nil {
		if _, list = get(""); strings.Contains(list, "latin%E9.nettrace") {
			_, page = get("latin%E9.nettrace")
			assert.Equal(t, "page of five", page)
		}
	}

	// A batch fills the folder.
	write(filepath.Join(dir, "new.nettrace"), "three")
	_, list = get("")
	assert.Contains(t, list, "new.nettrace")

	refused := map[string]string{"notes.doc": "no trace's name", "../" + filepath.Base(outside) + "/secret.nettrace": "above", "%2e%2e/secret.nettrace": "above, escaped", "sub": "a folder", "./a%20b.nettrace": "another way", "sub/../a%20b.nettrace": "another way"}
	if linked {
		refused["link.nettrace"], refused["out/secret.nettrace"] = "a link out", "through a link out"
	}
	for name, why := range refused {
		code, body := get(name)
		assert.Equal(t, 404, code, why)
		assert.NotContains(t, body, "page of", why)
	}
	code, _ = ask("GET", "http://"+f.host+"/", "")
	assert.Equal(t, 404, code, "without the token")
	code, _ = ask("GET", "http://"+f.host+"/"+strings.Repeat("A", len(f.token))+"/", "")
	assert.Equal(t, 404, code, "with another token")
	for _, name := range []string{"", "a%20b.nettrace", "batch-report.html", "bad.nettrace", "notes.doc"} {
		wanted, _ := get(name)
		code, body := ask("HEAD", base+name, "")
		assert.Equal(t, wanted, code, "HEAD of %q is answered as GET", name)
		assert.Empty(t, body)
	}
	r, err := http.Head(base + "a%20b.nettrace")
	require.NoError(t, err)
	r.Body.Close()
	assert.Equal(t, int64(len("page of one")), r.ContentLength)
	code, _ = ask("POST", base, "")
	assert.Equal(t, 405, code)
	code, _ = ask("GET", base, "evil.example:80")
	assert.Equal(t, 403, code, "a name that resolves to this machine")
	cancel()
	assert.NoError(t, <-ended)
}
