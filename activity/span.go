package activity

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// BridgeProvider is the event source that tells of System.Diagnostics.Activity.
const BridgeProvider = "Microsoft-Diagnostics-DiagnosticSource"

// Providers whose start and stop events say themselves which belong together.
const (
	LoggingProvider = "Microsoft-Extensions-Logging"
	KestrelProvider = "Microsoft-AspNetCore-Server-Kestrel"
)

// A cursor reads a payload from its beginning. The first failure sticks.
type cursor struct {
	b   []byte
	bad bool
}

// str reads UTF-16 up to its terminator.
func (c *cursor) str() string {
	for i := 0; i+1 < len(c.b); i += 2 {
		if c.b[i]|c.b[i+1] == 0 {
			u := make([]uint16, i/2)
			for k := range u {
				u[k] = binary.LittleEndian.Uint16(c.b[2*k:])
			}
			c.b = c.b[i+2:]
			return string(utf16.Decode(u))
		}
	}
	c.b, c.bad = nil, true
	return ""
}

func (c *cursor) int32() int32 {
	if len(c.b) < 4 {
		c.b, c.bad = nil, true
		return 0
	}
	v := int32(binary.LittleEndian.Uint32(c.b))
	c.b = c.b[4:]
	return v
}

// ReadPayload sets Span, or Key and Label, from the payload of e, whose other fields are set.
func (e *Event) ReadPayload(payload []byte) {
	switch {
	case e.Opcode != Start && e.Opcode != Stop:
	case e.Provider == BridgeProvider && strings.Contains(e.Name, "Activity"):
		e.Span, _ = DecodeSpan(payload)
	default:
		e.Key, e.Label = DecodeKey(e.Provider, payload)
	}
}

// Label returns what the start event of an activity calls it where the name of the event does not tell
// one from others: Source/Name of a span, the logger of an activity of the log. It is empty for other
// events. Rows have it as their Name.
func Label(provider, event string, payload []byte) string {
	switch {
	case provider == LoggingProvider:
		_, label := DecodeKey(provider, payload)
		return label
	case provider != BridgeProvider || !strings.Contains(event, "Activity"):
		return ""
	}
	c := cursor{b: payload}
	s := Span{Source: c.str()}
	s.Name = spanName(c.str())
	if c.bad {
		return ""
	}
	return s.label()
}

// DecodeKey reads the Key and the Label of an Event from the payload of a start or stop
// event: the number and factory of the log's activities, the connection or request of
// Kestrel's. They are empty for other events.
func DecodeKey(provider string, payload []byte) (key, label string) {
	c := cursor{b: payload}
	switch provider {
	case LoggingProvider: // ActivityStart, ActivityStop and their JSON variants
		id, factory := c.int32(), c.int32()
		label = c.str()
		key = strconv.Itoa(int(factory)) + "/" + strconv.Itoa(int(id))
	case KestrelProvider: // connection, and of requests their id: the first that is not an address
		key = c.str()
		if request := c.str(); !c.bad && strings.HasPrefix(request, key+":") {
			key = request
		}
		c.bad = false
	}
	if c.bad {
		return "", ""
	}
	return key, label
}

// DecodeSpan reads the payload of ActivityStart, ActivityStop and the other activity
// events of BridgeProvider: a source, a name, and an array of keys and values. It
// returns false if the payload is cut.
func DecodeSpan(payload []byte) (*Span, bool) {
	c := cursor{b: payload}
	s := &Span{Source: c.str()}
	s.Name = spanName(c.str())
	if c.bad {
		return nil, false
	}
	if len(c.b) < 2 {
		return s, true
	}
	n := int(binary.LittleEndian.Uint16(c.b))
	c.b = c.b[2:]
	for range n {
		key := c.str()
		value := c.str()
		if c.bad {
			return s, false
		}
		s.set(key, value)
	}
	return s, true
}

// spanName returns the name of a span without what a DiagnosticListener puts behind it.
func spanName(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".Start"), ".Stop")
}

// label is what a span is called.
func (s *Span) label() string { return s.Source + "/" + s.Name }

func (s *Span) set(key, value string) {
	switch key {
	case "Id", "ActivityId":
		s.ID = value
		if trace, span, ok := traceParent(value); ok && s.SpanID == "" {
			s.TraceID, s.SpanID = trace, span
		}
	case "ParentId", "ActivityParentId":
		if _, span, ok := traceParent(value); ok && s.ParentSpanID == "" {
			s.ParentSpanID = span
		}
	// An activity with a hierarchical id has zeros in place of these.
	case "TraceId":
		if strings.Trim(value, "0") != "" {
			s.TraceID = value
		}
	case "SpanId":
		if strings.Trim(value, "0") != "" {
			s.SpanID = value
		}
	case "ParentSpanId":
		if strings.Trim(value, "0") != "" {
			s.ParentSpanID = value
		}
	case "Kind":
		s.Kind = value
	case "DisplayName":
		s.DisplayName = value
	case "CommandText": // of SqlClient and Entity Framework: the profile database of dotnet-trace has it
		if s.DisplayName == "" {
			s.DisplayName = strings.Join(strings.Fields(value), " ")
		}
	case "Status":
		s.Status = value
	case "Duration":
		s.Duration = timeSpan(value)
	case "ActivityDuration":
		if ticks, err := strconv.ParseInt(value, 10, 54); err == nil {
			s.Duration = ticks * 100
		}
	}
}

// traceParent splits a W3C id, version-trace-span-flags. Hierarchical ids may have hyphens, too.
func traceParent(id string) (trace, span string, ok bool) {
	p := strings.Split(id, "-")
	if len(p) != 4 || len(p[0]) != 2 || len(p[1]) != 32 || len(p[2]) != 16 || len(p[3]) != 2 {
		return "", "", false
	}
	return p[1], p[2], true
}

// timeSpan reads the text of a TimeSpan, [d.]hh:mm:ss[.fffffff], in ns; 0 if it is none.
func timeSpan(s string) int64 {
	var days, part int64
	var clock [3]int64
	field := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= '0' && c <= '9' && part < 1e9:
			part = part*10 + int64(c-'0')
		case c == '.' && field == 0:
			days, part = part, 0
		case c == ':' && field < 2:
			clock[field], part = part, 0
			field++
		case c == '.' && field == 2:
			clock[2] = part
			frac := (s[i+1:] + "000000000")[:9]
			part = 0
			for _, f := range frac {
				if f < '0' || f > '9' {
					return 0
				}
				part = part*10 + int64(f-'0')
			}
			return ((days*24+clock[0])*60+clock[1])*int64(time.Minute) + clock[2]*int64(time.Second) + part
		default:
			return 0
		}
	}
	if field != 2 {
		return 0
	}
	return ((days*24+clock[0])*60+clock[1])*int64(time.Minute) + part*int64(time.Second)
}
