package chromium_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/tracefix/tracefix/chromium"
)

// A copy without the counters; everything else keeps its bytes.
func Example() {
	in := strings.NewReader(`{"traceEvents":[
{"ph":"B","name":"work","ts":1.5,"pid":1,"tid":2},
{"ph":"C","name":"heap","ts":2,"pid":1,"args":{"mb":7}},
{"ph":"E","name":"work","ts":4,"pid":1,"tid":2}
],"otherData":{"host":"a"}}
`)
	w := chromium.NewWriter(os.Stdout)
	r, err := chromium.NewReader(in, &chromium.Options{Outside: w.Outside()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		if ev.Phase == 'C' {
			w.Drop(ev)
			continue
		}
		if err := w.Write(ev); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// {"traceEvents":[
	// {"ph":"B","name":"work","ts":1.5,"pid":1,"tid":2},
	// {"ph":"E","name":"work","ts":4,"pid":1,"tid":2}
	// ],"otherData":{"host":"a"}}
}

// Times are exact where a float64 is not.
func ExampleParseTime() {
	t := chromium.ParseTime([]byte("1712195495519689.123"))
	fmt.Println(t.NS)
	// Output: 1712195495519689123
}

// A copy with an event behind all others.
func ExampleWriter_Insert() {
	in := strings.NewReader(`[{"ph":"i","name":"theirs","ts":1,"pid":1,"tid":2}`) // arrays may lack their end
	w := chromium.NewWriter(os.Stdout)
	r, err := chromium.NewReader(in, &chromium.Options{Outside: w.Outside(), EventsEnd: func() error {
		return w.Insert([]byte(`{"ph":"i","name":"ours","ts":2,"pid":1,"tid":2}`))
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := w.Write(ev); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("\n", w.Close())
	// Output:
	// [{"ph":"i","name":"theirs","ts":1,"pid":1,"tid":2}, {"ph":"i","name":"ours","ts":2,"pid":1,"tid":2}]
	//  <nil>
}
