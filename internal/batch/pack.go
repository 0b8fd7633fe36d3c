package batch

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"

	"github.com/tracefix/tracefix/internal/output"
)

// CheckPack refuses the name of an archive that promises another one than Pack makes.
func CheckPack(name string) error {
	if archiveName(name) == "tar" || strings.EqualFold(path.Ext(name), ".7z") {
		return fmt.Errorf("--archive %s: the archive is a zip, and its name says something else; end it in .zip", name)
	}
	return nil
}

// Pack writes the outputs of a batch into one zip, in the order of their inputs. The
// same outputs give the same bytes: times are those of no clock.
func Pack(ctx context.Context, c Config, r *Report, name string, force bool) error {
	c.Out = local(c.Out)
	s, err := openSink(ctx, &c)
	if err != nil {
		return err
	}
	if s, ok := s.(*storeSink); ok {
		defer s.store.Close()
	}
	f, err := output.Create(name, &output.Options{Force: force})
	if err != nil {
		return err
	}
	defer f.Close()
	z := zip.NewWriter(f)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.DefaultCompression) })
	for _, out := range r.Outputs() {
		if err := pack(ctx, z, s, out); err != nil {
			return fmt.Errorf("%s: %s: %w", name, out, err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return f.Commit()
}

func pack(ctx context.Context, z *zip.Writer, s sink, out string) error {
	r, err := s.open(ctx, out)
	if err != nil {
		return err
	}
	defer r.Close()
	h := &zip.FileHeader{Name: out, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(0o644)
	if _, end := cutCompression(out); end != "" {
		h.Method = zip.Store
	}
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, &ctxReader{ctx, r})
	return err
}
