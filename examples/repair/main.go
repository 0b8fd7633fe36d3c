// Command repair repairs the cut stacks of a trace, and prints its hottest methods.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/profile"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: repair TRACE")
	}
	p, err := tracefix.Read(context.Background(), os.Args[1], &tracefix.ReadOptions{Evidence: true, SampledOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	tracefix.Repair(p, nil)
	c := p.Counts()
	fmt.Printf("%d samples, %d cut: %d repaired, %d bridged, %d frames restored\n", c.Samples, c.Cut, c.Known, c.Bridged, c.Restored)
	for r := range p.Top(profile.TopOptions{Limit: 10}).Rows() {
		fmt.Printf("%8.1f ms  %s\n", r.CPUSelf, r.Method)
	}
}
