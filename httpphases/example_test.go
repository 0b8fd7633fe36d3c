package httpphases_test

import (
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/nettrace"
)

// The requests of a recording, event by event: File.Requests of the root package does this for any input.
func Example() {
	file, err := os.Open("../internal/requests/testdata/http-more.nettrace.zst")
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
	requests, outcomes := 0, map[httpphases.Outcome]int{}
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(q *httpphases.Request) {
		requests++
		outcomes[q.Outcome]++
	}})
	var d httpphases.Decoder
	var ids activity.Decoder
	end := int64(0)
	for ev, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		end = r.Nanos(ev.Time)
		e := httpphases.Event{Time: end, Thread: ev.ThreadID, Process: uint32(r.Header().ProcessID), ID: ev.ActivityID, Related: ev.RelatedActivityID}
		if path, ok := ids.Decode(e.ID); ok {
			e.PathLen = uint8(copy(e.Path[:], path.Numbers()))
			over, _ := path.Overflow()
			e.Overflow = over != activity.Fits
		}
		if m := ev.Metadata; d.Decode(&e, m.Provider, m.EventID, ev.Version, ev.EventName(), ev.Opcode, ev.Payload) {
			b.Add(&e)
		}
	}
	b.Finish(end)
	fmt.Println(requests, "requests:", outcomes)
	// Output:
	// 57 requests: map[ok:45 failed:10 canceled:2]
}
