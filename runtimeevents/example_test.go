package runtimeevents_test

import (
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/runtimeevents"
)

// events yields the events of a compressed trace with their times, ns since its start.
func events(name string) iter.Seq2[int64, *nettrace.Event] {
	return func(yield func(int64, *nettrace.Event) bool) {
		file, err := os.Open(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer file.Close()
		unpacked, err := zstd.NewReader(file)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer unpacked.Close()
		r, err := nettrace.NewReader(unpacked, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		for ev, err := range r.All() {
			if err != nil {
				fmt.Println(err)
				return
			}
			if !yield(r.Nanos(ev.Time), ev) {
				return
			}
		}
	}
}

// The collections of a process, and for how long they kept its threads still.
func Example() {
	var gcs runtimeevents.GCs
	for ns, ev := range events("../testdata/nettrace/runtime-gc.nettrace.zst") {
		gcs.Event(ev, ns, 0)
	}
	for _, p := range gcs.Finish() {
		var longest *runtimeevents.GC
		byGeneration := map[int]int{}
		for _, g := range p.Collections {
			byGeneration[int(g.Generation)]++
			if longest == nil || g.Pause() > longest.Pause() {
				longest = g
			}
		}
		fmt.Println(len(p.Collections), "collections by generation:", byGeneration)
		fmt.Println("pause", time.Duration(p.Pause()).Round(time.Microsecond), "of them number", longest.Number, longest.Reason, time.Duration(longest.Pause()).Round(time.Microsecond))
	}
	// Output:
	// 310 collections by generation: map[0:284 1:12 2:14]
	// pause 260.872ms of them number 45 AllocSmall 21.589ms
}

// What the JIT compiler made, and what of it kept a thread waiting.
func ExampleJIT() {
	var jit runtimeevents.JIT
	for ns, ev := range events("../testdata/nettrace/runtime-jit.nettrace.zst") {
		jit.Event(ev, ns, 0)
	}
	jit.Finish()
	var waited time.Duration
	background := 0
	for _, c := range jit.Compilations {
		if c.Background() {
			background++
		} else {
			waited += time.Duration(c.Time())
		}
	}
	fmt.Println(len(jit.Compilations), "compilations,", background, "in the background,", waited.Round(time.Millisecond), "waited for the others")
	// Output:
	// 574 compilations, 247 in the background, 110ms waited for the others
}

// Who waited for a lock, and for how long.
func ExampleContentions() {
	var locks runtimeevents.Contentions
	n, left, waited := 0, 0, time.Duration(0)
	for ns, ev := range events("../testdata/nettrace/runtime-locks.nettrace.zst") {
		c := locks.Event(ev, ns, 0)
		if c == nil {
			continue
		}
		if c.Stop == runtimeevents.Unknown { // given up without a stop
			left++
			continue
		}
		n++
		waited += time.Duration(c.Stop - c.Start)
	}
	fmt.Println(n, "waits of", waited.Round(time.Millisecond), "in all;", left, "without an end,", len(locks.Open()), "still open")
	// Output:
	// 282 waits of 8.931s in all; 8 without an end, 0 still open
}

// Exceptions as they were thrown. Their texts are those of the event, which is gone with the next one.
func ExampleReadException() {
	count := map[string]int{}
	for _, ev := range events("../testdata/nettrace/runtime-exceptions.nettrace.zst") {
		if !runtimeevents.IsException(ev) {
			continue
		}
		e, err := runtimeevents.ReadException(ev)
		if err != nil {
			fmt.Println(err)
			return
		}
		count[e.Type.String()]++
	}
	fmt.Println(len(count), "types, System.InvalidOperationException", count["System.InvalidOperationException"])
	// Output:
	// 14 types, System.InvalidOperationException 150
}
