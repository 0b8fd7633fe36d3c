package batch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
)

// A Store is a bucket: the batch's view of it.
type Store interface {
	// List yields the objects whose key begins with prefix, sorted by key.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Open reads length bytes of an object from offset at on; to its end if length is
	// negative. An object that has another version than o says, if it says one, is
	// ErrReplaced.
	Open(ctx context.Context, o Object, at, length int64) (io.ReadCloser, error)
	// Stat looks an object up; fs.ErrNotExist if there is none.
	Stat(ctx context.Context, key string) (Object, error)
	// Put makes an object appear whole.
	Put(ctx context.Context, key string, r io.Reader) error
	// Delete removes an object; one that is not there is no error.
	Delete(ctx context.Context, key string) error
	Close() error
}

// An Object is what a Store tells of one.
type Object struct {
	Key     string
	Size    int64
	Version string // changes with the content; empty if the store does not tell
}

// ErrReplaced is the error of an object that is no longer the one that was listed.
var ErrReplaced = errors.New("the object was replaced since it was listed")

// A storeError is a failure of a store or of the way to it. It says nothing about a trace:
// the same run again may go well.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// ofStore marks what a store could not do. An object that is not there is an answer.
func ofStore(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return storeError{err}
}

// ofStores reports whether err is what a store could not do.
func ofStores(err error) bool {
	var s storeError
	return errors.As(err, &s)
}

// whole reads all of an object.
func whole(ctx context.Context, s Store, key string) (io.ReadCloser, error) {
	return s.Open(ctx, Object{Key: key}, 0, -1)
}

// OpenURL opens the bucket of a URL and tells the key or prefix that the URL names.
type OpenURL func(ctx context.Context, url string) (s Store, key string, err error)

var urlScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9+.-]+://`) })

func isURL(p string) bool { return urlScheme().MatchString(p) }

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

// shown is a path or URL as reports show it.
func shown(name string) string {
	if isURL(name) {
		return withoutQuery(name)
	}
	return name
}

// A location is what a URL names.
type location struct {
	bucket string // its own URL, with its options: it opens the bucket again
	root   string // the bucket's name in reports
	key    string // an object or a prefix
}

func locate(raw, key string) location {
	shown := withoutQuery(raw)
	if strings.Contains(raw, "?") && !strings.Contains(raw, "=") {
		shown = raw // a pattern with a question mark has no options
	}
	root := strings.TrimSuffix(strings.TrimSuffix(shown, key), "/")
	return location{root + "/" + strings.TrimPrefix(raw, shown), root, key}
}

// stores are the buckets that a run has open, by URL.
type stores struct {
	open OpenURL

	mu  sync.Mutex
	all map[string]Store
}

// get gives the bucket of an entry.
func (s *stores) get(ctx context.Context, bucket string) (Store, error) {
	s.mu.Lock()
	st := s.all[bucket]
	s.mu.Unlock()
	if st != nil {
		return st, nil
	}
	st, _, err := s.at(ctx, bucket)
	return st, err
}

// at gives the bucket of any URL.
func (s *stores) at(ctx context.Context, raw string) (Store, location, error) {
	if s.open == nil {
		return nil, locate(raw, ""), errors.New("URLs are not supported here")
	}
	st, key, err := s.open(ctx, raw)
	if err != nil {
		return nil, locate(raw, ""), err
	}
	l := locate(raw, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.all[l.bucket]; known != nil {
		return known, l, st.Close()
	}
	if s.all == nil {
		s.all = map[string]Store{}
	}
	s.all[l.bucket] = st
	return st, l, nil
}

func (s *stores) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.all {
		st.Close()
	}
	s.all = nil
}
