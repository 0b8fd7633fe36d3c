// Package chromium reads and writes traces in the Chromium Trace Event JSON
// format, which Perfetto, chrome://tracing, speedscope and the browsers'
// developer tools load.
//
// There is no schema in practice, so the package interprets little and keeps
// everything. [Reader] scans the input in place and hands out one [Event] after
// the other as slices of the input: the raw bytes of the whole event, and those
// of the few values that nearly every tool needs. All bytes outside events
// (brackets, top-level keys before and after the events) go to
// [Options.Outside] as they come by, so that a program that copies both gives
// back the very same file, if that is one JSON document:
//
//	w := chromium.NewWriter(out)
//	r, err := chromium.NewReader(in, &chromium.Options{Outside: w.Outside()})
//	...
//	for ev, err := range r.All() {
//		if err != nil {
//			return err
//		}
//		if err := w.Write(ev); err != nil {
//			return err
//		}
//	}
//	return w.Close()
//
// # Forms
//
// The object form ({"traceEvents":[...], ...} with any keys in any order), the
// array form, the array form without its end (which is legal), and bare events
// in sequence with commas, newlines or nothing between them. In a copy the array
// has its end, and bare events stand in one: viewers refuse them otherwise. The
// reader takes plain JSON text; compression is the caller's business.
//
// # Damage
//
// A broken event is skipped up to the next whole one and told to
// [Options.Warn]; small faults of syntax (unescaped quotes, stray commas,
// NaN, bytes that are not UTF-8) are put right in [Event.Raw] and outside of
// events. An input that ends too early gives all whole events, then a
// [*FormatError] wrapping [io.ErrUnexpectedEOF]; what is missing at the end is
// written to [Options.Outside]. What stands behind the document is left out, but
// for its events with [Options.Behind]. So the copy of any input is one JSON
// document. Memory is bounded by [Options.MaxEventSize], whatever the input.
//
// # Numbers
//
// Times are microseconds as decimal text. They are read as integer nanoseconds
// and attoseconds, never through floating point, because epoch times with a
// fraction do not fit a float64.
package chromium
