// Command slowest prints the ten slowest HTTP requests of a nettrace file and where
// each spent its time.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/httpphases"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: slowest TRACE")
	}
	f, err := tracefix.Open(context.Background(), os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	var slowest []*httpphases.Request
	err = f.Requests(context.Background(), func(q *httpphases.Request) {
		slowest = append(slowest, q)
		slices.SortFunc(slowest, func(a, b *httpphases.Request) int { return cmp.Compare(b.Duration, a.Duration) })
		slowest = slowest[:min(len(slowest), 10)]
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range slowest {
		fmt.Printf("%v  %d  %s\n", time.Duration(q.Duration).Round(time.Microsecond), q.Status, q.URL())
		for _, p := range q.Partition() {
			fmt.Printf("    %-17v %v\n", p.Name, time.Duration(p.Duration).Round(time.Microsecond))
		}
	}
}
