// Command archive reads all traces of a zip, and goes on behind those that cannot be read.
package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
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
	z, err := zip.OpenReader(os.Args[1])
	if err != nil {
		log.Fatal(err)
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
		default: // the disk, or ctx: no other member would do better
			log.Fatal(err)
		}
	}
	if bad > 0 {
		log.Fatalf("%d of %d files cannot be read", bad, len(z.File))
	}
}

// cuts prints how many stacks of a trace are cut, and how many a repair puts right.
func cuts(ctx context.Context, m *zip.File) error {
	r, err := m.Open()
	if err != nil {
		return err
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
