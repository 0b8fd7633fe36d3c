// Command archive reads all traces of a zip, and goes on behind those that cannot be read.
package main

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/tracefix/tracefix"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: archive FILE.zip")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := readAll(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// readAll reads the traces of the zip of that name.
func readAll(ctx context.Context, name string) error {
	z, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer z.Close()
	bad := 0
	for _, m := range z.File {
		err := cuts(ctx, m)
		var content *tracefix.FormatError
		switch {
		case err == nil:
		case errors.Is(err, tracefix.ErrNotATrace): // archives hold other files, too
		case errors.As(err, &content):
			bad++
			log.Printf("byte %d: %v", content.Offset, err)
		case packedBadly(err): // the zip is to blame, which NewFile does not know of
			bad++
			log.Print(err)
		default: // the disk, or ctx: no other member would do better
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d files cannot be read", bad, len(z.File))
	}
	return nil
}

// packedBadly reports whether the zip is broken where a member stands.
func packedBadly(err error) bool {
	var packed flate.CorruptInputError
	return errors.As(err, &packed) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zip.ErrFormat) ||
		errors.Is(err, zip.ErrAlgorithm) || errors.Is(err, io.ErrUnexpectedEOF)
}

// cuts prints how many stacks of a trace are cut, and how many a repair puts right.
func cuts(ctx context.Context, m *zip.File) error {
	r, err := m.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	defer r.Close()
	f, err := tracefix.NewFile(m.Name, r)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := f.Profile(ctx, &tracefix.ReadOptions{Evidence: true})
	if err != nil {
		return err
	}
	tracefix.Repair(p, nil)
	c := p.Counts()
	fmt.Printf("%s: %s, %d samples, %d cut, %d repaired; broken at %d places\n", m.Name, f.Kind(), c.Samples, c.Cut, c.Known, p.Meta.Damages)
	return nil
}
