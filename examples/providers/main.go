// Command providers counts the events of a nettrace file by provider.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"

	"github.com/tracefix/tracefix/nettrace"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: providers FILE.nettrace")
	}
	f, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()

	r, err := nettrace.NewReader(f, &nettrace.Options{
		Warn: func(e *nettrace.FormatError) { log.Print("skipped: ", e) },
	})
	if err != nil {
		log.Fatal(err)
	}
	counts := map[string]int{}
	var ev nettrace.Event
	for {
		err = r.Read(&ev)
		if err != nil {
			break
		}
		counts[ev.Metadata.Provider]++
	}
	// What is whole in a damaged file has been read by now.
	if !errors.Is(err, io.EOF) {
		log.Print(err)
	}
	for _, p := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%8d  %s\n", counts[p], p)
	}
	fmt.Printf("%8d  lost\n", r.Stats().Lost)
}
