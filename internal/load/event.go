package load

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/tracefix/tracefix/internal/symbol"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A kind is what the loader does with an event type.
type kind uint8

const (
	kindOther     kind = iota + 1
	kindSample         // the runtime's sample profiler
	kindCPU            // collect-linux: on a CPU
	kindSwitch         // collect-linux: back on a CPU
	kindFault          // collect-linux: a page fault; its stack is none
	kindRuntime        // the runtime's own provider
	kindRundown        // state of the runtime at the end or the start
	kindNoise          // its stack says nothing
	kindSystem         // collect-linux: processes, mappings, symbols
	kindEventPipe      // the command line
)

// Providers.
const (
	providerSampler   = "Microsoft-DotNETCore-SampleProfiler"
	providerEventPipe = "Microsoft-DotNETCore-EventPipe"
	providerUniversal = "Universal.Events"
	providerSystem    = "Universal.System"
)

// kind returns what to do with events of this type.
func (l *loader) kind(m *nettrace.Metadata) kind {
	if m.Index >= 0 && m.Index < len(l.kinds) && l.kindOf[m.Index] == m {
		return l.kinds[m.Index]
	}
	k := kindOf(m)
	if m.Index == len(l.kinds) {
		l.kinds = append(l.kinds, k)
		l.kindOf = append(l.kindOf, m)
	} else if m.Index >= 0 && m.Index < 1<<16 {
		for len(l.kinds) <= m.Index {
			l.kinds = append(l.kinds, 0)
			l.kindOf = append(l.kindOf, nil)
		}
		l.kinds[m.Index], l.kindOf[m.Index] = k, m
	}
	return k
}

func kindOf(m *nettrace.Metadata) kind {
	switch m.Provider {
	case providerSampler:
		if m.EventID == 0 {
			return kindSample
		}
	case symbol.RuntimeProvider:
		if m.EventID >= 139 && m.EventID <= 144 || m.EventID == 190 {
			return kindNoise // still names methods
		}
		return kindRuntime
	case symbol.RundownProvider:
		return kindRundown
	case providerEventPipe:
		return kindEventPipe
	case providerSystem:
		return kindSystem
	case providerUniversal:
		switch {
		case m.Name == "cpu":
			return kindCPU
		case m.Name == "cswitch":
			return kindSwitch
		case strings.Contains(m.Name, "page_fault"):
			return kindFault
		}
	}
	return kindOther
}

// maxSpan is beyond what one recording can last: 30 days. A time behind it is damage,
// and does not make the trace longer.
const maxSpan = int64(30 * 24 * time.Hour)

// event takes one event.
func (l *loader) event(ev *nettrace.Event) {
	now := l.r.Nanos(ev.Time)
	if l.o.Take != nil {
		l.o.Take(ev, now, func() profile.StackID { return l.stack(l.thread(ev), ev, now) })
	}
	k := l.kind(ev.Metadata)
	switch k {
	case kindRundown:
		l.rundown(ev, now)
		return
	case kindSystem:
		l.system(ev, now)
		return
	}
	if now < maxSpan {
		l.end = max(l.end, now)
	}
	t := l.thread(ev)
	if l.compat != nil {
		l.compat.before(t, ev, k)
	}
	l.touch(t, now)
	switch k {
	case kindSample:
		l.sampler[ev.CaptureThreadID] = true
		l.sample(t, ev, now, sampleType(ev.Payload))
	case kindCPU:
		l.sample(t, ev, now, profile.SampleCPU)
	case kindSwitch:
		l.switched(t, ev, now)
	case kindFault:
	case kindEventPipe:
		if ev.Metadata.EventID == 1 {
			l.processInfo(t.proc, ev.Payload)
		}
	case kindRuntime, kindNoise:
		l.runtime(t, ev, now, k)
	default:
		l.evidence(t, ev, now)
		if l.o.Evidence && l.compat == nil && ev.Metadata.Provider == providerTPL {
			t.mark(ev)
		}
		if name := threadNameOf(ev); name != "" && t.trace.Name == "" {
			t.trace.Name = name
		}
	}
	if l.compat != nil {
		l.compat.event(t, ev, k, now)
	}
	if l.tracks != nil {
		l.tracks.event(ev, now, t, k)
	}
}

// sampleType reads the payload of a runtime sample.
func sampleType(payload []byte) profile.SampleType {
	if len(payload) < 4 {
		return profile.SampleError
	}
	switch binary.LittleEndian.Uint32(payload) {
	case 1:
		return profile.SampleExternal
	case 2:
		return profile.SampleManaged
	}
	return profile.SampleError
}

func (l *loader) sample(t *thread, ev *nettrace.Event, now int64, typ profile.SampleType) {
	l.info.Samples++
	if l.compat != nil {
		return
	}
	l.keep(t, profile.Sample{Time: now, Type: typ, Stack: l.stack(t, ev, now)})
}

// switched takes a thread that comes back onto a CPU: its stack is where it had left.
func (l *loader) switched(t *thread, ev *nettrace.Event, now int64) {
	l.info.Samples++
	s := profile.Sample{Time: now, Type: profile.SampleOffCPU}
	if l.compat != nil || l.o.Rules == symbol.Reference {
		return // the reference knows no such samples
	}
	if v, n := binary.Uvarint(ev.Payload); n > 0 && v < 1<<62 {
		s.Dur = max(0, now-l.r.Nanos(ev.Time-int64(v)))
	}
	s.Stack = l.stack(t, ev, now)
	l.keep(t, s)
}

// evidence keeps the stack of another event.
func (l *loader) evidence(t *thread, ev *nettrace.Event, now int64) {
	if ev.Stack.Len() == 0 {
		return
	}
	l.info.Stacked++
	if !l.o.Evidence || l.compat != nil {
		return
	}
	l.keep(t, profile.Sample{Time: now, Type: profile.SampleEvent, Stack: l.stack(t, ev, now)})
}

// runtime takes an event of the runtime's own provider.
func (l *loader) runtime(t *thread, ev *nettrace.Event, now int64, k kind) {
	id := ev.Metadata.EventID
	if k == kindNoise || id == 151 || id == 152 {
		if t.proc.names.Event(false, id, ev.Payload, now) != nil {
			l.info.BadNames++
		}
	}
	if k == kindNoise {
		return
	}
	l.evidence(t, ev, now)
	switch id {
	case 85: // ThreadCreated
		if len(ev.Payload) >= 28 {
			c := l.threadOf(ev.ProcessID, uint64(binary.LittleEndian.Uint32(ev.Payload[24:])))
			if c.trace.Samples.Len() > 0 {
				l.births = append(l.births, birth{c, now}) // the id was used again
			}
		}
	default:
		if name := threadNameOf(ev); name != "" && t.trace.Name == "" {
			t.trace.Name = name
		}
	}
}

// threadNameOf returns what an event tells about the thread that wrote it.
func threadNameOf(ev *nettrace.Event) string {
	switch ev.Metadata.Provider {
	case symbol.RuntimeProvider:
		switch ev.Metadata.EventID {
		case 13, 14: // GCFinalizersStop, GCFinalizersStart
			return ".NET Finalizer Thread"
		case 50, 51, 57: // ThreadPoolWorkerThreadStart, -Stop, -Wait
			return ".NET ThreadPool Worker"
		case 64: // ThreadPoolIODequeue
			return ".NET IO ThreadPool Worker"
		}
	case "Microsoft-Windows-DotNETRuntimePrivate":
		if ev.Metadata.EventID == 11 { // BGCBegin
			return ".NET Background GC Thread"
		}
	case "System.Diagnostics.Eventing.FrameworkEventSource":
		switch ev.Metadata.EventID {
		case 31, 151: // ThreadPoolDequeueWork, ThreadTransferReceive
			return ".NET ThreadPool Worker"
		}
	}
	return ""
}

func (l *loader) rundown(ev *nettrace.Event, now int64) {
	id := ev.Metadata.EventID
	if id == 146 {
		l.info.Rundown = true
	}
	if l.process(ev.ProcessID).names.Event(true, id, ev.Payload, now) != nil {
		l.info.BadNames++
	}
}

// Events of Universal.System.
const (
	systemProcess       = 0 // ExistingProcess
	systemProcessCreate = 1
	systemProcessExit   = 2
	systemMapping       = 3
	systemSymbol        = 4
	systemMetadata      = 5
)

// system takes an event of Universal.System.
func (l *loader) system(ev *nettrace.Event, now int64) {
	var err error
	l.systems++
	switch ev.Metadata.EventID {
	case systemProcess, systemProcessCreate:
		old := l.procs[ev.ProcessID]
		again := ev.Metadata.EventID == systemProcessCreate && old != nil && old.exited // the id is used again
		if again {
			delete(l.procs, ev.ProcessID)
			clear(l.rows)
		}
		p := l.process(ev.ProcessID)
		if again {
			p.since = l.systems
		}
		if name := systemName(ev.Payload); name != "" && p.trace.Name == "" {
			p.trace.Name = name
		}
	case systemProcessExit: // also written when only a thread ends, so it ends nothing by itself
		if p := l.procs[ev.ProcessID]; p != nil {
			p.exited = true
		}
	case systemMapping:
		err = l.process(ev.ProcessID).names.Mapping(ev.Payload, now)
	case systemSymbol:
		err = l.process(ev.ProcessID).names.Symbol(ev.Payload, now)
	case systemMetadata:
		err = l.images.Add(ev.Payload)
	}
	if err != nil {
		l.info.BadNames++
	}
}

// systemName reads the name in ExistingProcess and ProcessCreate.
func systemName(payload []byte) string {
	_, n := binary.Uvarint(payload)
	if n <= 0 || len(payload) < n+2 {
		return ""
	}
	size := int(binary.LittleEndian.Uint16(payload[n:]))
	rest := payload[n+2:]
	if size > len(rest) {
		return ""
	}
	return strings.ToValidUTF8(string(rest[:size]), "\uFFFD")
}

// processInfo takes the command line.
func (l *loader) processInfo(p *process, payload []byte) {
	cmd := symbol.UTF16(payload)
	if cmd == "" {
		return
	}
	p.trace.CommandLine = cmd
	p.trace.Name = ProcessName(cmd)
}

// ProcessName is the program that a command line starts: the file without directory
// and extension, of `dotnet app.dll` that of the dll.
func ProcessName(cmd string) string {
	words := splitCommand(cmd)
	if len(words) == 0 {
		return ""
	}
	name := programName(words[0])
	if strings.EqualFold(name, "dotnet") {
		for _, w := range words[1:] {
			if strings.HasSuffix(strings.ToLower(w), ".dll") {
				return programName(w)
			}
		}
	}
	return name
}

func programName(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	if n := len(path) - 4; n > 0 {
		if e := strings.ToLower(path[n:]); e == ".dll" || e == ".exe" {
			return path[:n]
		}
	}
	return path
}

// splitCommand splits at blanks outside double quotes, which it removes.
func splitCommand(cmd string) []string {
	var words []string
	var w strings.Builder
	quoted, any := false, false
	for _, r := range cmd {
		switch {
		case r == '"':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any {
				words = append(words, w.String())
				w.Reset()
				any = false
			}
		default:
			w.WriteRune(r)
			any = true
		}
	}
	if any {
		words = append(words, w.String())
	}
	return words
}
