package spans

import (
	"bytes"
	"hash/crc32"

	"github.com/tracefix/tracefix/chromium"
)

// A brief is what is followed of an event: a quarter of the bytes, which matters where events go from one
// processor to another.
type brief struct {
	off     int64
	ns, dur int64 // of TS, and from there to the end, within limits
	sub     uint32
	thread  int32
	name    int32
	size    int32  // of Raw
	alike   uint32 // equal of events that are the same but for what else a brief tells
	lead    int32  // bytes of the separator before it
	phase   byte
	timed   bool // TS is valid
	lasting bool // Dur is valid
	endless bool // there is no Dur
	threads bool // it has pid and tid
	named   bool
	empty   bool // it is {}, as the first event of some C++ profilers and the last one of Unity
	cat, sf []byte
	whole   *chromium.Event // see parsed.keep; nil of most that were read on another goroutine
}

// shorten makes it that of an event. The texts are those of the event.
func (b *brief) shorten(ev *chromium.Event) {
	b.off = ev.Offset
	// Sums and differences of absurd times must not overflow. Some tools count from 1970, which is
	// beyond what the loader of .NET traces takes for a time.
	b.ns = min(max(ev.TS.NS, -1<<60), 1<<62)
	b.dur = min(max(ev.Dur.NS, -1<<60), 1<<61)
	if b.dur >= 0 && ev.TS.Sub+ev.Dur.Sub >= 1e9 {
		b.dur++ // else a span may end behind the one that holds it, by what was rounded
	}
	b.sub = ev.TS.Sub
	b.thread, b.name = ev.Thread, ev.NameID
	b.size, b.lead = int32(len(ev.Raw)), int32(len(ev.Lead))
	b.phase, b.timed, b.lasting = ev.Phase, ev.TS.Valid, ev.Dur.Valid
	b.endless = !b.lasting && (ev.Dur.Text == nil || string(ev.Dur.Text) == "null")
	b.threads, b.named = ev.PID != nil && ev.TID != nil, ev.Name != nil
	b.empty = ev.Phase == 0 && len(bytes.Trim(ev.Raw, "{} \t\r\n")) == 0
	b.cat, b.sf = ev.Cat, ev.SF
	b.whole = ev
	// Begins and ends are many, and time goes on with them. Much else is alike in all but its id or args.
	if b.alike = uint32(b.size); b.phase != 'B' && b.phase != 'E' {
		b.alike = crc32.ChecksumIEEE(ev.Raw)
	}
}
