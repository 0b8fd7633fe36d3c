package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// A Store is a bucket: the batch's view of it.
type Store interface {
	// List yields the objects whose key begins with prefix, sorted by key.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Open reads length bytes of an object from its start; all of it if length is negative.
	Open(ctx context.Context, key string, length int64) (io.ReadCloser, error)
	// Stat looks an object up; fs.ErrNotExist if there is none.
	Stat(ctx context.Context, key string) (Object, error)
	// Put makes an object appear whole.
	Put(ctx context.Context, key string, r io.Reader) error
	Close() error
}

// An Object is what a Store tells of one.
type Object struct {
	Key     string
	Size    int64
	Version string // changes with the content; empty if the store does not tell
}

// OpenURL opens the bucket of a URL and tells the key or prefix that the URL names.
type OpenURL func(ctx context.Context, url string) (s Store, key string, err error)

var urlScheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]+://`)

func isURL(p string) bool { return urlScheme.MatchString(p) }

// local turns a file:// URL into the path that it stands for: a folder of this machine
// needs no bucket, and gives more than one does.
func local(p string) string {
	rest, ok := strings.CutPrefix(p, "file://")
	if !ok {
		return p
	}
	if u, err := url.Parse(p); err == nil && (u.Host == "" || u.Host == "localhost") {
		rest = u.Path
	}
	if runtime.GOOS == "windows" {
		rest = strings.TrimPrefix(rest, "/")
	}
	return filepath.FromSlash(rest)
}

// withoutQuery is a URL as reports show it: options may hold what is not for them.
func withoutQuery(raw string) string {
	u, _, _ := strings.Cut(raw, "?")
	return u
}

// bucket takes a URL: an object, a prefix that is walked like a folder, or a pattern.
func (w *walker) bucket(raw string, many bool) bool {
	shown := withoutQuery(raw)
	if strings.Contains(raw, "?") && !strings.Contains(raw, "=") {
		shown = raw // a pattern with a question mark has no options
	}
	if w.openURL == nil {
		return w.refuse(shown, "", errors.New("URLs are not supported here"))
	}
	s, key, err := w.openURL(w.ctx, raw)
	if err != nil {
		return w.refuse(shown, "", err)
	}
	h := newShared(func() { s.Close() })
	defer h.done()
	root := strings.TrimSuffix(strings.TrimSuffix(shown, key), "/")

	if key != "" && !strings.HasSuffix(key, "/") && !hasMeta(key) {
		if o, err := s.Stat(w.ctx, key); err == nil {
			prefix := ""
			if many {
				prefix = path.Base(key)
			}
			return w.object(s, h, o, root, path.Base(key), prefix)
		}
		key += "/" // then it is a folder
	}
	prefix, pats := key, []string(nil)
	if hasMeta(key) {
		parts := strings.Split(key, "/")
		n := 0
		for n < len(parts) && !hasMeta(parts[n]) {
			n++
		}
		prefix = strings.Join(parts[:n], "/")
		if prefix != "" {
			prefix += "/"
		}
		pats = parts[n:]
	}
	below := ""
	if many && pats == nil {
		below = path.Base(strings.TrimSuffix(prefix, "/"))
		if prefix == "" {
			below = path.Base(root)
		}
	}
	found := false
	for o, err := range s.List(w.ctx, prefix) {
		if err != nil {
			return w.ctx.Err() == nil && w.refuse(shown, "", err)
		}
		r := strings.TrimPrefix(o.Key, prefix)
		if strings.HasSuffix(o.Key, "/") || r == "" {
			continue // how consoles draw a folder
		}
		if pats != nil && !matchElems(pats, strings.Split(r, "/"), false) {
			continue
		}
		found = true
		safe, err := memberName(r)
		if err != nil {
			if !w.refuse(root+"/"+o.Key, "", fmt.Errorf("refused: %w", err)) {
				return false
			}
			continue
		}
		rel := path.Join(below, safe)
		if hidden(safe) {
			if strings.HasPrefix(safe, stateDir+"/") {
				continue
			}
			if !w.emit(&item{name: root + "/" + o.Key, rel: rel, skip: skipHidden}) {
				return false
			}
			continue
		}
		if !w.object(s, h, o, root, rel, rel) {
			return false
		}
	}
	if !found {
		return w.refuse(shown, "", errors.New("there is no object of that name or below it"))
	}
	return true
}

func (w *walker) object(s Store, h *shared, o Object, root, rel, prefix string) bool {
	name := root + "/" + o.Key
	if o.Size > w.maxSize {
		return w.refuse(name, rel, w.tooBig(o.Size))
	}
	w.progress.addTotal(o.Size)
	var head []byte
	if o.Size > 0 { // stores refuse a range of nothing
		r, err := s.Open(w.ctx, o.Key, headSize)
		if err == nil {
			head, err = readHead(r)
			r.Close()
		}
		if err != nil {
			return w.ctx.Err() == nil && w.refuse(name, rel, err)
		}
	}
	open := func() (io.ReadCloser, error) { return s.Open(w.ctx, o.Key, -1) }
	k := sniffArchive(head)
	if k.form != "" {
		return w.archive(k, source{open: open, stored: o.Size}, name, prefix, 1)
	}
	it := &item{name: name, rel: rel, stored: o.Size, credit: o.Size, packed: k.packed, version: o.Version}
	if int64(len(head)) == o.Size { // seen whole already
		it.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(head)), nil }
	} else {
		it.fetch = open
		it.closers = append(it.closers, h.use())
	}
	return w.emit(it)
}
