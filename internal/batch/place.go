package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
)

// A place is a folder or the objects below a URL: where plans and reports lie.
type place struct {
	raw    string
	store  Store // nil: a folder
	prefix string
}

func openPlace(ctx context.Context, st *stores, raw string) (*place, error) {
	raw = local(raw)
	if !isURL(raw) {
		return &place{raw: raw}, nil
	}
	s, l, err := st.at(ctx, raw)
	if err != nil {
		return nil, err
	}
	prefix := l.key
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return &place{raw, s, prefix}, nil
}

func (p *place) name(rel string) string { return inPlace(p.raw, rel) }

func (p *place) open(ctx context.Context, rel string) (io.ReadCloser, error) {
	if p.store != nil {
		return whole(ctx, p.store, p.prefix+rel)
	}
	return os.Open(filepath.Join(p.raw, filepath.FromSlash(rel)))
}

func (p *place) read(ctx context.Context, rel string) ([]byte, error) {
	r, err := p.open(ctx, rel)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func (p *place) write(ctx context.Context, rel string, b []byte) error {
	if p.store != nil {
		return p.store.Put(ctx, p.prefix+rel, bytes.NewReader(b))
	}
	if err := os.MkdirAll(p.raw, 0o777); err != nil {
		return err
	}
	return writeFile(filepath.Join(p.raw, filepath.FromSlash(rel)), b)
}

// free says that a file may be written.
func (p *place) free(ctx context.Context, rel string, force bool) error {
	if p.store == nil {
		if err := output.Check(p.name(rel), &output.Options{Force: force}); err != nil {
			return report.UsageError{Err: err}
		}
		return nil
	}
	if force {
		return nil
	}
	_, err := p.store.Stat(ctx, p.prefix+rel)
	switch {
	case err == nil:
		return report.UsageError{Err: fmt.Errorf("%s: %w", p.name(rel), output.ErrExists)}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// make writes a file that may be large.
func (p *place) make(ctx context.Context, rel string, write func(io.Writer) error) error {
	if p.store == nil {
		f, err := output.Create(filepath.Join(p.raw, filepath.FromSlash(rel)), &output.Options{Force: true})
		if err != nil {
			return err
		}
		defer f.Close()
		if err := write(f); err != nil {
			return err
		}
		return f.Commit()
	}
	f, err := output.TempFile("", "tracefix-report-")
	if err != nil {
		return err
	}
	defer output.RemoveTemp(f)
	if err := write(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return p.store.Put(ctx, p.prefix+rel, f)
}

// IsURL reports whether name is a URL, of an object store or else.
func IsURL(name string) bool { return isURL(name) }

// WriteURL makes an object appear whole. One that is there is replaced with force only.
func WriteURL(ctx context.Context, open OpenURL, name string, force bool, write func(io.Writer) error) error {
	st := &stores{open: open}
	defer st.close()
	dir, base := splitPlace(name)
	p, err := openPlace(ctx, st, dir)
	if err != nil {
		return err
	}
	if err := p.free(ctx, base, force); err != nil {
		return err
	}
	if err := p.make(ctx, base, write); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// splitPlace splits the name of a file, or of an object with the options of its URL, off the
// place that it lies in.
func splitPlace(name string) (dir, base string) {
	if !isURL(name) {
		return filepath.Dir(name), filepath.Base(name)
	}
	shown := withoutQuery(name)
	i := strings.LastIndexByte(shown, '/')
	return shown[:i] + strings.TrimPrefix(name, shown), shown[i+1:]
}

// list names what lies directly in the place and in the folder that batches keep for
// themselves.
func (p *place) list(ctx context.Context, begin string) ([]string, error) {
	var out []string
	for _, dir := range []string{"", stateDir + "/"} {
		if p.store != nil {
			for o, err := range p.store.List(ctx, p.prefix+dir+begin) {
				if err != nil {
					return nil, err
				}
				out = append(out, strings.TrimPrefix(o.Key, p.prefix))
			}
			continue
		}
		entries, err := os.ReadDir(filepath.Join(p.raw, filepath.FromSlash(dir)))
		switch {
		case err == nil, dir != "" && os.IsNotExist(err):
		case os.IsNotExist(err):
			return nil, fmt.Errorf("%s: no such file or folder%s", p.raw, input.MeantFile(p.raw))
		default:
			return nil, fmt.Errorf("%s: %w", p.raw, input.Plain(err))
		}
		for _, e := range entries {
			if e.Type() != fs.ModeDir && strings.HasPrefix(e.Name(), begin) {
				out = append(out, dir+e.Name())
			}
		}
	}
	if len(out) == 0 {
		if begin == reportName {
			return nil, fmt.Errorf("%s: holds no %s, as `tracefix batch` writes into its -o", p.raw, begin)
		}
		return nil, fmt.Errorf("%s: holds no %s*, the reports that runs with --shard or --piece write; one of a whole batch has nothing to be joined with", p.raw, begin)
	}
	return out, nil
}
