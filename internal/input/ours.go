package input

import "bytes"

// written is JSON that a command of tracefix makes of a trace and that nothing of ours reads: its
// first key, and another one that it has.
type written struct{ first, also, what string }

var ours = []written{
	{"command", "totals", "a report of `tracefix batch`"},
	{"command", "status", "a report of tracefix"},
	{"k", "totals", "a report of `tracefix batch`"},
	{"k", "input", "rows of a report of `tracefix batch`"},
	{"k", "", "what `tracefix gc`, `jit`, `locks` or `threads` tells of a trace"},
	{"title", "processes", "what `tracefix gc`, `jit`, `locks` or `threads` tells of a trace"},
	{"id", "outcome", "what `tracefix http` tells of a trace"},
	{"requests", "start_ms", "what `tracefix http` tells of a trace"},
	{"source", "findings", "what `tracefix http --summary` tells of a trace"},
	{"row", "provider", "what `tracefix activities` tells of a trace"},
	{"activities", "provider", "what `tracefix activities` tells of a trace"},
	{"ms", "provider", "what `tracefix events` tells of a trace"},
	{"time", "provider", "what `tracefix counters` tells of a trace"},
	{"values", "provider", "what `tracefix counters` tells of a trace"},
	{"file", "verdicts", "what `tracefix info` tells of a trace"},
	{"samples", "groups", "what `tracefix top` tells of a trace"},
	{"before", "per_request", "what `tracefix compare` tells of two traces"},
	{"conn", "kind", "what `tracefix ipc` tells of a conversation"},
	{"resourceSpans", "", "OTLP, which OpenTelemetry collectors read"},
	{"resourceMetrics", "", "OTLP, which OpenTelemetry collectors read"},
	{"resourceLogs", "", "OTLP, which OpenTelemetry collectors read"},
}

// ourOwn says what JSON is that was made of a trace, "" if it is none of that.
func ourOwn(head []byte) string {
	b, isObject := bytes.CutPrefix(jsonOf(head), []byte("{"))
	if !isObject || bytes.Contains(b, []byte(`"traceEvents"`)) || bytes.Contains(b, []byte(`"ph"`)) {
		return ""
	}
	b = bytes.TrimLeft(b, " \t\r\n")
	for _, w := range ours {
		if bytes.HasPrefix(b, []byte(`"`+w.first+`":`)) && (w.also == "" || bytes.Contains(b, []byte(`"`+w.also+`":`))) {
			return w.what + "; give the trace that it was made from"
		}
	}
	return ""
}
