// Command requests prints the HTTP requests of a trace with their phases, and its activities.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/httpphases"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: requests TRACE")
	}
	made := func(q *httpphases.Request) { fmt.Println(q.ID, q.Status, q.URL(), q.Duration, "ns", q.Phases) }
	served := func(q *httpphases.ServerRequest) { fmt.Println("served", q.ID, q.Status, q.Target, q.Duration, "ns") }
	activities := tracefix.NewActivityScanner(nil)
	err := tracefix.Scan(context.Background(), os.Args[1], tracefix.NewRequestScanner(made, served), activities)
	if err != nil {
		log.Fatal(err)
	}
	for i, a := range activities.Tree().Rows {
		fmt.Println("activity", i, "below", a.Parent, a.Provider, a.Name, a.Status, a.Start, "to", a.Stop, "ns")
	}
}
