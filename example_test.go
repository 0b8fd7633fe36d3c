package tracefix_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/profile"
)

// Cut stacks are put right, and the methods added up.
func Example() {
	p, err := tracefix.Read(context.Background(), "testdata/chain.nettrace.zst", &tracefix.ReadOptions{Evidence: true})
	if err != nil {
		log.Fatal(err)
	}
	tracefix.Repair(p, nil)
	c := p.Counts()
	fmt.Println(c.Samples, "samples,", c.Cut, "cut,", c.Known, "repaired")
	for r := range p.Top(profile.TopOptions{Limit: 2, Total: true}).Rows() {
		fmt.Println(r.Method)
	}
	// Output:
	// 8505 samples, 4291 cut, 4291 repaired
	// Lab!Lab.Chain.Walk.Spin()
	// Lab!Lab.Chain.Alpha.F000(class Lab.Chain.Walk)
}

// What ran in half a second of a trace becomes a file for speedscope.
func ExampleWrite() {
	p, err := tracefix.Read(context.Background(), "testdata/chain.nettrace.zst", nil)
	if err != nil {
		log.Fatal(err)
	}
	p.Select(profile.Selection{To: int64(500 * time.Millisecond), CPUOnly: true})
	fmt.Println(p.Counts().Samples > 0)
	err = tracefix.Write(io.Discard, p, "speedscope", &tracefix.WriteOptions{Name: "half a second"})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// The requests of a process with their phases.
func ExampleFile_Requests() {
	f, err := tracefix.Open(context.Background(), "internal/requests/testdata/http-more.nettrace.zst")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	requests, failed := 0, 0
	err = f.Requests(context.Background(), func(q *httpphases.Request) {
		if requests++; q.Outcome == httpphases.Failed {
			failed++
		}
	}, nil)
	fmt.Println(requests, failed, err)
	// Output: 57 10 <nil>
}

// Where the time of a request went.
func ExampleFile_Explain() {
	f, err := tracefix.Open(context.Background(), "internal/requests/testdata/http-more.nettrace.zst")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	var sum httpphases.TimeByCause
	err = f.Explain(context.Background(), func(q *httpphases.Request) {
		if q.Why != nil { // its duration is known
			sum.Add(&q.Why.Time)
		}
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for cause, ns := range sum.Causes {
		if ns > 0 {
			fmt.Println(cause, time.Duration(ns).Round(time.Millisecond))
		}
	}
	// Output:
	// cpu 38ms
	// other_side 870ms
	// unknown 414ms
}

// Activities ride on the reading of the samples: the file is read once.
func ExampleReadOptions_also() {
	f, err := tracefix.Open(context.Background(), "internal/requests/testdata/http-more.nettrace.zst")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	activities := tracefix.NewActivityScanner(&activity.Options{})
	p, err := f.Profile(context.Background(), &tracefix.ReadOptions{Also: []tracefix.Consumer{activities}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(p.Threads) > 0, len(activities.Tree().Rows) > 0)
	// Output: true true
}
