package nettrace_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tracefix/tracefix/nettrace"
)

// All events of a file, decoded.
func Example() {
	file, err := os.Open("../testdata/nettrace/executioncheckpoints.nettrace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	r, err := nettrace.NewReader(file, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	h := r.Header()
	fmt.Println("version", h.Version, "recorded", h.SyncTime, "in process", h.ProcessID)
	var values []nettrace.Value
	for ev, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(ev.Metadata.Provider, ev.EventName())
		values, err = ev.AppendValues(values[:0])
		if err != nil {
			fmt.Println(err)
			return
		}
		for i, f := range ev.Layout().Fields {
			fmt.Printf("  %s = %v\n", f.Name, &values[i])
		}
	}
	// Output:
	// version 4 recorded 2021-06-09 09:48:25.902 +0000 UTC in process 9832
	// Microsoft-Windows-DotNETRuntimeRundown ExecutionCheckpointRundown/ExecutionCheckpointDCEnd
	//   ClrInstanceID = 9
	//   Name = RuntimeInit
	//   Timestamp = 11111925598665
	// Microsoft-Windows-DotNETRuntimeRundown ExecutionCheckpointRundown/ExecutionCheckpointDCEnd
	//   ClrInstanceID = 9
	//   Name = RuntimeSuspend
	//   Timestamp = 11111925877436
	// Microsoft-Windows-DotNETRuntimeRundown ExecutionCheckpointRundown/ExecutionCheckpointDCEnd
	//   ClrInstanceID = 9
	//   Name = RuntimeResumed
	//   Timestamp = 11111925880297
}

// A file that was cut gives what is whole in it.
func ExampleReader_Read() {
	data, err := os.ReadFile("../testdata/nettrace/tracelogging.netperf")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := nettrace.NewReader(bytes.NewReader(data[:2000]), &nettrace.Options{
		Warn: func(e *nettrace.FormatError) { fmt.Println("warning:", e) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ev nettrace.Event
	n := 0
	for err = r.Read(&ev); err == nil; err = r.Read(&ev) {
		n++
	}
	fmt.Println(n, "events")
	fmt.Println(errors.Is(err, io.ErrUnexpectedEOF), err)
	// Output:
	// warning: nettrace: offset 94: EventBlock: block of 2820 bytes: unexpected EOF
	// 7 events
	// true nettrace: offset 2000: end of file: no end mark, the recording was cut off: unexpected EOF
}

// Rescue a file that other tools refuse.
func ExampleCopy() {
	whole, err := os.ReadFile("../testdata/nettrace/executioncheckpoints.nettrace")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := nettrace.NewReader(bytes.NewReader(whole[:540]), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	w, err := nettrace.NewWriter(&out, r.Header())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("reading:", nettrace.Copy(w, r, nil))
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}
	r, err = nettrace.NewReader(&out, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	n := 0
	for _, err := range r.All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		n++
	}
	fmt.Println(n, "events in a whole file")
	// Output:
	// reading: nettrace: offset 540: end of file: no end mark, the recording was cut off: unexpected EOF
	// 3 events in a whole file
}
