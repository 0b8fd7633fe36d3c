package httpphases

import (
	"encoding/binary"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// A cursor reads a payload field by field. The first failure sticks.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int) []byte {
	if len(c.b) < n {
		c.bad, c.b = true, nil
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) u8() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) i32() int32 {
	if b := c.take(4); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (c *cursor) i64() int64 {
	if b := c.take(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (c *cursor) f64() float64 { return math.Float64frombits(uint64(c.i64())) }

// raw returns the bytes of a string and moves behind its terminator.
func (c *cursor) raw() []byte {
	for i := 0; i+1 < len(c.b); i += 2 {
		if c.b[i]|c.b[i+1] == 0 {
			s := c.b[:i]
			c.b = c.b[i+2:]
			return s
		}
	}
	c.bad, c.b = true, nil
	return nil
}

func (c *cursor) str() string { return text(c.raw()) }

// text decodes UTF-16; lone surrogates become U+FFFD.
func text(b []byte) string {
	n := len(b) / 2
	var small [128]byte
	if n <= len(small) {
		for i := range n {
			if b[2*i+1] != 0 || b[2*i] >= utf8.RuneSelf {
				return longText(b)
			}
			small[i] = b[2*i]
		}
		return string(small[:n])
	}
	return longText(b)
}

func longText(b []byte) string {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u))
}

// An interner keeps short strings that come again and again. The zero value works.
type interner struct{ m map[string]string }

func (in *interner) str(c *cursor) string {
	b := c.raw()
	var buf [64]byte
	if len(b) > 2*len(buf) {
		return text(b)
	}
	for i := 0; i < len(b); i += 2 {
		if b[i+1] != 0 || b[i] >= utf8.RuneSelf {
			return text(b)
		}
		buf[i/2] = b[i]
	}
	if s, ok := in.m[string(buf[:len(b)/2])]; ok {
		return s
	}
	if in.m == nil || len(in.m) > 4096 {
		in.m = map[string]string{}
	}
	s := string(buf[:len(b)/2])
	in.m[s] = s
	return s
}

// A Decoder reads payloads. The zero value works; it is not safe for concurrent use.
type Decoder struct {
	hosts   interner
	aliases map[string]string // names that the bridge's session gave to values, with their paths
}

// httpEvents maps an event id of System.Net.Http to its Kind: they are the same.
const httpEvents = int(RequestRedirect)

// Decode reads a payload of a provider's event into e and sets its Kind. It returns
// false, and leaves e unusable, if the event has nothing to do with requests or its
// payload is shorter than every layout that is known for it. name, with or without the
// slash that readers put before Start and Stop, is needed for the providers of ASP.NET
// Core, the log and the bridge, whose ids are given out at run time; opcode for those that
// are not known, whose starts count as OtherStart.
//
// The layout is chosen by version and checked against the length of the payload. Bytes
// behind the known fields are ignored.
func (d *Decoder) Decode(e *Event, provider string, id, version int, name string, opcode int, payload []byte) bool {
	c := cursor{b: payload}
	e.Kind = KindNone
	switch provider {
	case ProviderHTTP:
		if id < 1 || id > httpEvents {
			return false
		}
		d.http(e, Kind(id), &c)
	case ProviderDNS:
		switch id {
		case 1:
			e.Kind, e.Host = ResolutionStart, d.hosts.str(&c)
		case 2:
			e.Kind = ResolutionStop
		case 3:
			e.Kind = ResolutionFailed
		}
	case ProviderSockets:
		switch id {
		case 1:
			e.Kind, e.Text = ConnectStart, d.hosts.str(&c)
		case 2:
			e.Kind = ConnectStop
		case 3:
			e.Kind, e.Status, e.Text = ConnectFailed, c.i32(), c.str()
		case 4:
			e.Kind = OtherStart
		}
	case ProviderSecurity:
		switch id {
		case 1:
			e.Kind, e.Server, e.Host = HandshakeStart, c.i32() != 0, d.hosts.str(&c)
		case 2:
			e.Kind, e.Status = HandshakeStop, c.i32()
		case 3:
			e.Kind, e.Server, e.Millis, e.Text = HandshakeFailed, c.i32() != 0, c.f64(), c.str()
		}
	case ProviderHosting, hostingOld:
		switch hostingName(name, id) {
		case "RequestStart":
			e.Kind, e.Method, e.Text = ServerRequestStart, d.hosts.str(&c), c.str()
		case "RequestStop":
			e.Kind = ServerRequestStop
		case "UnhandledException":
			e.Kind = ServerUnhandled
		default:
			e.other(opcode)
		}
	case ProviderKestrel:
		if d.kestrel(e, hostingName(name, id), &c); e.Kind == KindNone {
			e.other(opcode)
		}
	case ProviderLogging:
		d.logging(e, name, &c)
	case ProviderBridge:
		return d.bridge(e, name, &c)
	default:
		e.other(opcode)
	}
	return e.Kind != KindNone && !c.bad
}

// other takes a start of an activity that tells no more than that.
func (e *Event) other(opcode int) {
	if opcode == 1 {
		e.Kind = OtherStart
	}
}

func (d *Decoder) http(e *Event, k Kind, c *cursor) {
	e.Kind = k
	switch k {
	case RequestStart:
		e.Scheme, e.Host, e.Port, e.Text = d.hosts.str(c), d.hosts.str(c), c.i32(), c.str()
		e.Major, e.Minor, e.Policy = c.u8(), c.u8(), c.i32()
	case RequestStop, ResponseHeadersStop:
		if len(c.b) >= 4 { // version 0 has no payload
			e.Status, e.HasStatus = c.i32(), true
		}
	case RequestFailed, RequestFailedDetailed:
		if len(c.b) >= 2 {
			e.Text = c.str()
		}
	case ConnectionEstablished:
		e.Major, e.Minor = c.u8(), c.u8()
		if len(c.b) >= 8 {
			e.Conn, e.HasConn = c.i64(), true
			e.Scheme, e.Host, e.Port, e.Text = d.hosts.str(c), d.hosts.str(c), c.i32(), d.hosts.str(c)
		}
	case ConnectionClosed:
		e.Major, e.Minor = c.u8(), c.u8()
		if len(c.b) >= 8 {
			e.Conn, e.HasConn = c.i64(), true
		}
	case RequestLeftQueue:
		e.Millis, e.Major, e.Minor = c.f64(), c.u8(), c.u8()
		if !(e.Millis >= 0 && e.Millis < 1e12) { // also NaN
			c.bad = true
		}
	case RequestHeadersStart:
		if len(c.b) >= 8 {
			e.Conn, e.HasConn = c.i64(), true
		}
	case RequestContentStop:
		e.Length = c.i64()
	case RequestRedirect:
		e.Text = c.str()
	}
}
