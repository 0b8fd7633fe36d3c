// Package nettrace reads and writes the trace files of .NET: .nettrace as
// dotnet-trace, dotnet-monitor, dotnet-counters and the runtime itself write them,
// its predecessor .netperf, and the version 6 of dotnet-trace collect-linux.
//
//	r, err := nettrace.NewReader(file, nil)
//	if err != nil {
//		return err // no trace at all, or a version from the future
//	}
//	for ev, err := range r.All() {
//		if err != nil {
//			return err // the file was damaged or cut; all that is whole came before
//		}
//		fmt.Println(r.Nanos(ev.Time), ev.ThreadID, ev.Metadata.Provider, ev.EventName())
//	}
//
// # The format in short
//
// A file is a header (clock, process) and a sequence of blocks: metadata, which describe the types
// of events; stacks, which events refer to by number; events, whose headers tell only what differs
// from the event before; and sequence points, which end a region: stack numbers start again, and
// the writer records how many events each thread has written, so that lost ones can be counted.
//
//	version                   written by                       read  written
//	1  netperf                .NET Core 2.0 previews           yes   as 4
//	2  netperf                .NET Core 2.0                    yes   as 4
//	3  netperf                .NET Core 2.1, 2.2               yes   as 4
//	4  nettrace               .NET Core 3.0 and all later      yes   yes
//	   (5: the same with more metadata, .NET 5 and later)      yes   yes
//	6  nettrace               dotnet-trace collect-linux       yes   yes
//
// Pointers of 4 and 8 bytes are supported. Compressed files must be unpacked by
// the caller.
//
// # Order
//
// The file has the events of each thread in order, but not of all threads. A Reader
// delivers all of them in order of time, events of one instant in file order. It
// holds back only as many as the file allows to overlap: at most one region, 10
// MB of events in files of the runtime. Options.MaxBuffered bounds it for files
// without sequence points.
//
// # Ownership
//
// The reader reuses an Event's memory: Payload, Stack and Labels, and all Values and
// Texts taken from them, are valid until the next call of Read, or of ReadBatch. Metadata and
// Thread are stable for the life of the Reader and must not be changed. A Reader or
// Writer is for one goroutine; different ones are independent. A Batch can go to
// another goroutine while the Reader reads on, as far as Options.Hold tells.
//
// # The end, damage and errors
//
// Read returns io.EOF only after the mark that ends a trace, and only if nothing
// had to be skipped. A recording that was cut off, as by a process that was
// killed, gives all whole events, then a *FormatError that wraps
// io.ErrUnexpectedEOF. Damage inside costs as little as can be: a broken event the
// rest of its block, a broken block itself; the reader finds the next block and
// goes on, and at the end returns a *FormatError that wraps ErrDamaged.
// Options.Warn is called for each defect with its offset as it is met, of harmless
// ones, too. Hostile input neither panics nor asks for more memory than some
// multiple of its own size.
//
// Events that the runtime lost because its buffers were full are no damage. Event.Lost
// tells how many are missing before an event, Reader.Losses where, and Stats how
// many in all.
//
// # Payloads
//
// Event.AppendValues decodes a payload into Values by Event.Layout: the field list
// in the file or, for the runtime's own events, which have none, a built-in one
// from the runtime's public manifest. Newer versions of an event append fields, so
// the newest known layout reads them, too. Events without any field list have
// their bytes in Payload. For the payloads that matter most to profilers there are
// direct decoders, such as Event.Method, Event.SampleType and Event.Symbol; see Role.
//
// # Writing
//
// A Writer makes files that strict readers (PerfView, Visual Studio, dotnet-trace)
// accept. Copy rescues a damaged file, or rewrites one with changes:
//
//	w, err := nettrace.NewWriter(out, r.Header())
//	...
//	err = nettrace.Copy(w, r, func(ev *nettrace.Event) bool {
//		ev.Stack = repaired(ev)
//		return true // false drops the event
//	})
//	...
//	err = w.Close()
//
// Sources: the format documents and the reader in src/TraceEvent/EventPipe of
// microsoft/perfview; the writers, src/native/eventpipe of dotnet/runtime and
// nettrace.rs of microsoft/one-collect; ClrEtwAll.man of dotnet/runtime for payloads.
package nettrace
