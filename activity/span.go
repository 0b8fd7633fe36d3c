package activity

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf16"
)

// BridgeProvider is the event source that tells of System.Diagnostics.Activity.
const BridgeProvider = "Microsoft-Diagnostics-DiagnosticSource"

// DecodeSpan reads the payload of ActivityStart, ActivityStop and the other activity
// events of BridgeProvider: a source, a name, and an array of keys and values. It
// returns false if the payload is cut.
func DecodeSpan(payload []byte) (*Span, bool) {
	str := func() (string, bool) {
		for i := 0; i+1 < len(payload); i += 2 {
			if payload[i]|payload[i+1] == 0 {
				u := make([]uint16, i/2)
				for k := range u {
					u[k] = binary.LittleEndian.Uint16(payload[2*k:])
				}
				payload = payload[i+2:]
				return string(utf16.Decode(u)), true
			}
		}
		payload = nil
		return "", false
	}
	s := &Span{}
	var ok bool
	if s.Source, ok = str(); !ok {
		return nil, false
	}
	if s.Name, ok = str(); !ok {
		return nil, false
	}
	if len(payload) < 2 {
		return s, true
	}
	n := int(binary.LittleEndian.Uint16(payload))
	payload = payload[2:]
	for range n {
		key, ok := str()
		if !ok {
			return s, false
		}
		value, ok := str()
		if !ok {
			return s, false
		}
		switch key {
		case "TraceId":
			s.TraceID = value
		case "SpanId":
			s.SpanID = value
		case "ParentSpanId":
			if strings.Trim(value, "0") != "" {
				s.ParentSpanID = value
			}
		case "Kind":
			s.Kind = value
		case "DisplayName":
			s.DisplayName = value
		case "Status":
			s.Status = value
		case "Duration":
			s.Duration = timeSpan(value)
		}
	}
	return s, true
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
