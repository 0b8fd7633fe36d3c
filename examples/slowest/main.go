// Command slowest prints the ten slowest HTTP requests of a nettrace file and where
// each spent its time.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/nettrace"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: slowest FILE.nettrace")
	}
	f, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	r, err := nettrace.NewReader(f, nil)
	if err != nil {
		log.Fatal(err)
	}

	var slowest []*httpphases.Request
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(q *httpphases.Request) {
		slowest = append(slowest, q)
		slices.SortFunc(slowest, func(a, b *httpphases.Request) int { return cmp.Compare(b.Duration, a.Duration) })
		slowest = slowest[:min(len(slowest), 10)]
	}})
	var d httpphases.Decoder
	var ev nettrace.Event
	end := int64(0)
	for {
		if err = r.Read(&ev); err != nil {
			break
		}
		end = r.Nanos(ev.Time)
		e := httpphases.Event{Time: end, Thread: ev.ThreadID, ID: ev.ActivityID, Related: ev.RelatedActivityID}
		if !d.Decode(&e, ev.Metadata.Provider, ev.Metadata.EventID, ev.Version, ev.Metadata.Name, ev.Opcode, ev.Payload) {
			continue
		}
		if p, ok := activity.Decode(activity.ID(ev.ActivityID), false); ok {
			e.PathLen = uint8(copy(e.Path[:], p.Numbers()))
		}
		b.Add(&e)
	}
	if !errors.Is(err, io.EOF) {
		log.Print(err) // what is whole has been read
	}
	b.Finish(end)

	for _, q := range slowest {
		fmt.Printf("%v  %d  %s\n", time.Duration(q.Duration).Round(time.Microsecond), q.Status, q.URL())
		for _, p := range q.Partition() {
			fmt.Printf("    %-17v %v\n", p.Name, time.Duration(p.Duration).Round(time.Microsecond))
		}
	}
}
