package view

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// A Folder serves the traces of a folder to the browser of this machine: their list, and a page of
// each when it is asked for. Its address holds a random token, so that no other program's page
// finds it, and requests must name the address itself, so that no foreign name that resolves to
// it reaches it. Links that lead out of the folder are not followed.
type Folder struct {
	root  *os.Root
	dir   string
	token string
	host  string
	in    net.Listener
	pages Pages
	busy  sync.Mutex // one page at a time: each takes all of the machine

	listing sync.Mutex // of known
	known   map[string]known
}

// Pages make what a Folder shows. Both write a page into a file that does not exist yet.
type Pages struct {
	// Kind looks into a file and names the kind of trace that it is; "" if it is none.
	Kind func(file string) string
	// View makes the page of a trace, Requests that of its HTTP requests, whose rows lead to stacks, the
	// address of the first.
	View     func(ctx context.Context, trace, out string) error
	Requests func(ctx context.Context, trace, stacks, out string) error
}

// A known file has been looked into.
type known struct {
	size int64
	time time.Time
	kind string
}

const (
	maxListed = 5000            // traces that the list shows
	lookTime  = 2 * time.Second // for which a list looks into files; it is asked for again
)

// Serve begins to listen for requests on this machine only.
func Serve(dir string, pages Pages) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		root.Close()
		return nil, err
	}
	return &Folder{root: root, dir: dir, token: rand.Text(), host: in.Addr().String(), in: in, pages: pages, known: map[string]known{}}, nil
}

// Address is what the browser opens.
func (f *Folder) Address() string { return "http://" + f.host + "/" + f.token + "/" }

// Run answers requests until ctx is done.
func (f *Folder) Run(ctx context.Context) error {
	defer f.root.Close()
	s := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(f.in); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (f *Folder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Type", "text/html; charset=utf-8")
	if r.Host != f.host {
		http.Error(w, "not this address", http.StatusForbidden)
		return
	}
	token, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !ok || subtle.ConstantTimeCompare([]byte(token), []byte(f.token)) != 1 {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead { // net/http leaves the body of the latter away
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if name == "" {
		f.list(w)
		return
	}
	f.trace(w, r, name)
}

// trace makes the page of a trace and sends it.
func (f *Folder) trace(w http.ResponseWriter, r *http.Request, name string) {
	file := filepath.FromSlash(name) // which need not be UTF-8, as fs.ValidPath has it
	if !filepath.IsLocal(file) || filepath.ToSlash(filepath.Clean(file)) != name {
		http.NotFound(w, r)
		return
	}
	info, err := f.root.Stat(file) // an error if it leads out of the folder
	if err != nil || !info.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	switch f.kind(name, info) {
	case "":
		if !documents[strings.ToLower(path.Ext(name))] {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		f.made(w, r, name, info)
		return
	case pageKind:
		f.made(w, r, name, info)
		return
	}
	f.busy.Lock()
	defer f.busy.Unlock()
	if r.Context().Err() != nil {
		return // nobody waits for it any more
	}
	temp, err := os.MkdirTemp("", "tracefix-view-*")
	if err != nil {
		http.Error(w, text.Line(err.Error()), http.StatusInternalServerError)
		return
	}
	defer os.RemoveAll(temp)
	out := filepath.Join(temp, "page.html")
	file = filepath.Join(f.dir, file)
	if r.URL.Query().Get("page") == "requests" {
		err = f.pages.Requests(r.Context(), file, "./"+url.PathEscape(path.Base(name)), out)
	} else {
		err = f.pages.View(r.Context(), file, out)
	}
	if err != nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		http.Error(w, text.Line(err.Error()), http.StatusUnprocessableEntity)
		return
	}
	http.ServeFile(w, r, out)
}

// pageKind is the kind of files that are pages themselves: the overview of a batch and what it wrote.
const pageKind = "page"

// documents are how the names of what a batch wrote end where that is no trace and no page, such as the
// requests of one: its overview leads to them. They are shown as text.
var documents = map[string]bool{
	".ndjson": true, ".jsonl": true, ".json": true, ".har": true, ".csv": true, ".prom": true, ".openmetrics": true, ".md": true, ".txt": true, ".text": true,
}

// made sends a page or document that lies in the folder. Its scripts have an origin of their own, and reach nothing.
func (f *Folder) made(w http.ResponseWriter, r *http.Request, name string, info fs.FileInfo) {
	w.Header().Set("Content-Security-Policy", "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:")
	page, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer page.Close()
	http.ServeContent(w, r, name, info.ModTime(), page) // ServeFileFS would send whoever asks for index.html elsewhere
}

// kind looks into a file of the folder, unless that has been done.
func (f *Folder) kind(name string, info fs.FileInfo) string {
	f.listing.Lock()
	defer f.listing.Unlock()
	k, ok := f.known[name]
	if !ok || k.size != info.Size() || !k.time.Equal(info.ModTime()) {
		k = known{info.Size(), info.ModTime(), f.look(name)}
		f.known[name] = k
	}
	return k.kind
}

func (f *Folder) look(name string) string {
	if ext := strings.ToLower(path.Ext(name)); ext == ".html" || ext == ".htm" {
		return pageKind
	}
	return f.pages.Kind(filepath.Join(f.dir, filepath.FromSlash(name)))
}

// A listed is a trace or page of the folder.
type listed struct {
	name, kind string
	size       int64
	time       time.Time
}

// traces lists the traces and pages of the folder, the newest first. more says that there are others,
// that have not been looked into yet or do not fit.
func (f *Folder) traces() (list []listed, more bool) {
	end := time.Now().Add(lookTime)
	_ = fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // what cannot be read is not shown
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case strings.HasPrefix(d.Name(), ".") && name != ".":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Type().IsRegular():
			if len(list) == maxListed || time.Now().After(end) {
				more = true
				return fs.SkipAll
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			if kind := f.kind(name, info); kind != "" {
				list = append(list, listed{name, kind, info.Size(), info.ModTime()})
			}
		}
		return nil
	})
	text.SortRows(list, func(a, b *listed) int { return b.time.Compare(a.time) })
	return list, more
}

// list writes the list of traces, which the browser asks for again every few seconds.
func (f *Folder) list(w http.ResponseWriter) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	traces, more := f.traces()
	var b strings.Builder
	fmt.Fprintf(&b, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5"><title>%s - tracefix</title>
<style>:root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:24px auto;max-width:1000px;padding:0 16px}td,th{padding:3px 12px;text-align:left}td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}</style></head><body>
<h1>%s</h1><p>%s file%s. The page of a trace is made when it is opened; the list follows the folder.</p><table><tr><th scope="col">File</th><th scope="col">Kind</th><th scope="col">More</th><th scope="col">Size</th><th scope="col">Written</th></tr>
`, html.EscapeString(text.Line(filepath.Base(f.dir))), html.EscapeString(text.Line(f.dir)), report.Count(len(traces)), report.Plural(len(traces)))
	for _, t := range traces {
		address := (&url.URL{Path: "/" + f.token + "/" + t.name}).EscapedPath()
		more := ""
		if t.kind == "nettrace" {
			more = `<a href="` + html.EscapeString(address) + `?page=requests">HTTP requests</a>`
		}
		fmt.Fprintf(&b, `<tr><td><a href="%s">%s</a></td><td>%s</td><td>%s</td><td class="n">%.1f MB</td><td class="n">%s</td></tr>`+"\n", html.EscapeString(address), html.EscapeString(text.Line(t.name)), html.EscapeString(t.kind), more, float64(t.size)/1e6, t.time.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	b.WriteString("</table>")
	if more {
		fmt.Fprintf(&b, "<p>There are more: at most %s are listed, and large folders are gone through bit by bit.</p>", report.Count(maxListed))
	}
	b.WriteString("</body></html>\n")
	_, _ = w.Write([]byte(b.String())) // the browser may have gone
}
