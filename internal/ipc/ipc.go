// Package ipc records conversations with the diagnostic server of a .NET runtime
// (diagnostics-ipc.md), by a proxy in front of the server's socket; it decodes such
// recordings, and carves the traces out of them.
//
// A recording is read once, in pieces; a trace inside it may have any size. Three kinds
// are known: frames of several connections, the bytes of one direction of one
// connection, and the bytes of both directions one after the other.
package ipc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	magic        = "DOTNET_IPC_V1\x00"
	advertise    = "ADVR_V1\x00"
	headerSize   = 20
	advertSize   = 34
	frameHeader  = 17
	maxFrame     = 64 << 20
	maxConns     = 1 << 16
	maxBlock     = 16 << 20 // bytes kept of an environment
	maxHeld      = 64 << 20 // bytes kept of all that is not complete
	maxJunk      = 256      // bytes kept of what is no message
	setServer    = 0xff
	setEventPipe = 2
	setProcess   = 4
)

// ErrNoRecording says that bytes are no recording of such a conversation.
var ErrNoRecording = errors.New("not a recording of a diagnostics conversation")

// A Direction says who sent a message.
type Direction byte

// Directions.
const (
	ToRuntime Direction = 'c' // a request, from the tool
	ToTool    Direction = 's' // an answer, from the runtime
)

// An Item is one thing that was sent on a connection.
type Item struct {
	Conn      int
	Direction Direction
	// Ns is the time since the first frame; -1 if the recording holds no times.
	Ns int64
	// Offset is where it begins in the recording.
	Offset int64
	Size   int64 // bytes

	// Kind is "advertise", "request", "response", "environment", "trace", or "junk": bytes
	// that are no message.
	Kind string
	// Name is that of the command or answer: "CollectTracing2", "OK", "Error".
	Name   string
	Set    int
	ID     int
	Fields []Field
	// Notes tell what is odd: a cut message, spare bytes.
	Notes []string
	// Cut is set where the recording ends within the item.
	Cut bool
	// EndNs is the time of the last byte of a trace.
	EndNs int64
	// Format of a trace: "nettrace" or "netperf".
	Format string
}

// A Field is a part of a message.
type Field struct {
	Name  string
	Value any // string, uint64, int64, bool, or []Field, []Provider
	// Secret values are of the environment of the process.
	Secret bool
}

// A Provider is asked for in a CollectTracing command.
type Provider struct {
	Name      string `json:"name"`
	Keywords  uint64 `json:"-"`
	Hex       string `json:"keywords"`
	Level     uint32 `json:"level"`
	Arguments string `json:"arguments,omitempty"`
	Filter    string `json:"filter,omitempty"` // "only 4,7", "all but 4"
}

// Options of Read.
type Options struct {
	// Trace returns where the bytes of the trace of a connection go; nil: nowhere.
	Trace func(conn int, format string) (io.WriteCloser, error)
}

// A Result tells about a recording as a whole.
type Result struct {
	Framed bool
	Conns  int
	Bytes  int64
	Traces int
	Damage []Damage
}

// A Damage is a place at which a recording breaks its form.
type Damage struct {
	Offset int64
	What   string
}

// IsRecording reports whether content that begins with head may be a recording.
func IsRecording(head []byte) bool {
	return bytes.HasPrefix(head, []byte(magic)) || bytes.HasPrefix(head, []byte(advertise)) || framed(head)
}

// framed reports whether head begins with frames: their lengths lead to further frames,
// and one of the first begins a conversation.
func framed(head []byte) bool {
	talk := false
	for at, n := 0, 0; at+frameHeader <= len(head) && n < 64; n++ {
		f := head[at:]
		if !isFrame(f) {
			return talk // damaged there
		}
		size := int(binary.LittleEndian.Uint32(f[13:]))
		body := f[frameHeader:min(frameHeader+size, len(f))]
		talk = talk || bytes.HasPrefix(body, []byte("DOTNET_IPC_V")) || bytes.HasPrefix(body, []byte(advertise))
		at += frameHeader + size
	}
	return talk
}

// isFrame reports whether h may be the header of a frame.
func isFrame(h []byte) bool {
	return (h[0] == 'c' || h[0] == 's') && binary.LittleEndian.Uint32(h[1:]) != 0 && binary.LittleEndian.Uint32(h[13:]) <= maxFrame
}

// Read decodes a recording and calls yield with everything that was sent, in the order
// in which it was complete. An error means that it is no recording, or that yield or a
// writer failed.
func Read(r io.Reader, o *Options, yield func(*Item) error) (*Result, error) {
	if o == nil {
		o = &Options{}
	}
	d := &decoder{o: o, yield: yield, conns: map[uint32]*conn{}}
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	head = head[:n]
	if !IsRecording(head) {
		return nil, fmt.Errorf("%w: expected frames, DOTNET_IPC_V1 or ADVR_V1 at offset 0", ErrNoRecording)
	}
	all := io.MultiReader(bytes.NewReader(head), r)
	if !bytes.HasPrefix(head, []byte(magic)) && !bytes.HasPrefix(head, []byte(advertise)) {
		d.res.Framed = true
		err = d.frames(all)
	} else {
		err = d.raw(all)
	}
	if err != nil {
		return &d.res, err
	}
	d.res.Conns = len(d.order)
	return &d.res, d.finish()
}

type decoder struct {
	o      *Options
	yield  func(*Item) error
	conns  map[uint32]*conn
	order  []*conn
	res    Result
	start  uint64
	newest uint32 // connection
	held   int    // bytes of all streams that wait for more
}

// A conn is a connection being decoded.
type conn struct {
	id      int
	request *Item // the newest
	streams [2]*stream
	mixed   bool
}

// A stream is one direction of a connection.
type stream struct {
	dir   Direction
	buf   []byte // not decoded yet
	at    int64  // offset in the recording of buf[0]
	began int64  // time of buf[0]
	item  *Item  // what the rest belongs to: a trace, an environment, junk
	left  int64  // bytes of item to come; -1: until the end
	out   io.WriteCloser
	tail  []byte // last two bytes of a trace
	late  bool   // an answer without its request may be that of a session: a trace may follow
}

func (d *decoder) conn(id uint32) *conn {
	c := d.conns[id]
	if c == nil {
		c = &conn{id: int(id)}
		c.streams[0] = &stream{dir: ToRuntime}
		c.streams[1] = &stream{dir: ToTool}
		d.conns[id] = c
		d.order = append(d.order, c)
	}
	return c
}

func (d *decoder) damaged(at int64, format string, args ...any) {
	if len(d.res.Damage) < 1000 {
		d.res.Damage = append(d.res.Damage, Damage{at, fmt.Sprintf(format, args...)})
	}
}

// frames reads a recording of frames: direction, connection, time, length, bytes.
func (d *decoder) frames(r io.Reader) error {
	b := bufio.NewReaderSize(r, 64<<10)
	buf := make([]byte, 64<<10)
	at := int64(0)
	first := true
	for {
		h, err := b.Peek(frameHeader)
		if err == io.EOF && len(h) == 0 {
			break
		}
		if err == io.EOF {
			d.damaged(at, "the recording ends within the header of a frame: %d of %d bytes", len(h), frameHeader)
			break
		}
		if err != nil {
			return err
		}
		if !isFrame(h) {
			d.damaged(at, "not a frame: expected c or s, a connection and a length, found % x", h)
			n, err := d.skip(b)
			if at += n; err != nil {
				return err
			}
			continue
		}
		size := int64(binary.LittleEndian.Uint32(h[13:]))
		id := binary.LittleEndian.Uint32(h[1:])
		if len(d.conns) >= maxConns && d.conns[id] == nil {
			d.damaged(at, "more than %d connections", maxConns)
			break
		}
		ns := binary.LittleEndian.Uint64(h[5:])
		if first {
			d.start, first = ns, false
		}
		c := d.conn(id)
		s := c.streams[0]
		if h[0] == 's' {
			s = c.streams[1]
		}
		d.newest = max(d.newest, id)
		if _, err := b.Discard(frameHeader); err != nil {
			return err
		}
		at += frameHeader
		for size > 0 {
			part := buf[:min(size, int64(len(buf)))]
			n, err := io.ReadFull(b, part)
			held := len(s.buf)
			if ferr := d.feed(c, s, part[:n], at, int64(ns-d.start)); ferr != nil {
				return ferr
			}
			at += int64(n)
			if d.held += len(s.buf) - held; d.held > maxHeld {
				d.damaged(at, "more than %d bytes wait for the rest of their messages; what follows was not read", maxHeld)
				d.res.Bytes = at
				return nil
			}
			size -= int64(n)
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				d.damaged(at, "the recording ends within a frame: %d bytes are missing", size)
				d.res.Bytes = at
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	d.res.Bytes = at
	return nil
}

// What frames tell is believed behind damage where it goes on with what was told: connections are numbered one
// after the other, and tools talk for less than a day.
const (
	newConns = 1 << 10
	longTalk = 24 * time.Hour
)

// skip leaves out what is no frame, and tells how much that was.
func (d *decoder) skip(b *bufio.Reader) (n int64, err error) {
	for {
		h, err := b.Peek(frameHeader)
		if err == nil && isFrame(h) && binary.LittleEndian.Uint32(h[1:]) <= d.newest+newConns &&
			binary.LittleEndian.Uint64(h[5:])-d.start < uint64(longTalk) {
			return n, nil
		}
		gone := 1
		if err == io.EOF {
			gone = len(h)
		} else if err != nil {
			return n, err
		}
		if gone, err = b.Discard(gone); err != nil || len(h) < frameHeader {
			return n + int64(gone), err
		}
		n += int64(gone)
	}
}

// raw reads the bytes of one connection, one direction or both.
func (d *decoder) raw(r io.Reader) error {
	c := d.conn(1)
	c.mixed = true
	s := c.streams[1]
	buf := make([]byte, 64<<10)
	at := int64(0)
	for {
		n, err := r.Read(buf)
		if ferr := d.feed(c, s, buf[:n], at, -1); ferr != nil {
			return ferr
		}
		at += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	d.res.Bytes = at
	return nil
}

// feed takes bytes of a connection.
func (d *decoder) feed(c *conn, s *stream, b []byte, at, ns int64) error {
	for len(b) > 0 {
		if s.item != nil {
			used, err := d.more(c, s, b, ns)
			if err != nil {
				return err
			}
			b, at = b[used:], at+int64(used)
			continue
		}
		if len(s.buf) == 0 {
			s.at, s.began = at, ns
		}
		s.buf = append(s.buf, b...)
		b = nil
		if err := d.messages(c, s, false, ns); err != nil {
			return err
		}
		if s.item != nil {
			// The rest belongs to what follows the message.
			b, s.buf = s.buf, nil
			at = s.at
		}
	}
	return nil
}

// messages decodes what is whole of what is kept, up to an item that stays open; what follows a
// message began at ns. last: nothing more comes.
func (d *decoder) messages(c *conn, s *stream, last bool, ns int64) error {
	for s.item == nil && len(s.buf) > 0 {
		used, err := d.message(c, s, last)
		if err != nil {
			return err
		}
		if used == 0 {
			break
		}
		s.buf = s.buf[used:]
		s.at += int64(used)
		s.began = ns
	}
	return nil
}

// more gives bytes to the item that is open, and says how many it took.
func (d *decoder) more(c *conn, s *stream, b []byte, ns int64) (int, error) {
	n := len(b)
	if s.left >= 0 {
		n = int(min(int64(n), s.left))
		s.left -= int64(n)
	}
	b = b[:n]
	it := s.item
	if it.Size == 0 {
		it.Ns = ns
	}
	it.Size += int64(n)
	it.EndNs = ns
	switch it.Kind {
	case "trace":
		if len(s.tail) < 32 { // its head tells the format
			s.tail = append(s.tail, b[:min(len(b), 32-len(s.tail))]...)
		}
		if it.Format == "" && len(s.tail) >= 8 {
			it.Format = traceFormat(s.tail)
		}
		if s.out == nil && it.Size == int64(n) && d.o.Trace != nil {
			out, err := d.o.Trace(c.id, c.format(it))
			if err != nil {
				return 0, err
			}
			s.out = out
		}
		if s.out != nil {
			if _, err := s.out.Write(b); err != nil {
				return 0, err
			}
		}
		s.buf = append(s.buf, b[max(0, len(b)-2):]...)
		s.buf = append(s.buf[:0], s.buf[max(0, len(s.buf)-2):]...)
	case "environment":
		s.buf = append(s.buf, b[:min(len(b), max(0, maxBlock-len(s.buf)))]...)
	default:
		s.buf = append(s.buf, b[:min(len(b), max(0, maxJunk-len(s.buf)))]...)
	}
	if s.left == 0 {
		return n, d.close(c, s, false)
	}
	return n, nil
}

// The first bytes of traces.
const (
	nettraceHead = "Nettrace"
	netperfHead  = "\x14\x00\x00\x00!Fas"
	traceHead    = len(nettraceHead)
)

func traceFormat(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte(nettraceHead)):
		return "nettrace"
	case bytes.HasPrefix(head, []byte(netperfHead)):
		return "netperf"
	}
	return ""
}

// format is that of a trace as far as it is known: by its first bytes, by the request.
func (c *conn) format(it *Item) string {
	if it.Format != "" {
		return it.Format
	}
	if c.request != nil {
		for _, f := range c.request.Fields {
			if s, ok := f.Value.(string); ok && f.Name == "format" && s == "netperf" {
				return s
			}
		}
	}
	return "nettrace"
}

// close ends the item that is open.
func (d *decoder) close(c *conn, s *stream, end bool) error {
	it := s.item
	s.item = nil
	switch it.Kind {
	case "trace":
		d.res.Traces++
		if s.out != nil {
			if err := s.out.Close(); err != nil {
				return err
			}
			s.out = nil
		}
		switch {
		case it.Size == 0:
			it.Cut = true
			it.Notes = append(it.Notes, "nothing came")
		case it.Format == "":
			it.Cut = true
			it.Notes = append(it.Notes, "does not begin like a trace")
		case !bytes.HasSuffix(s.buf, []byte{6, 1}):
			it.Cut = true
			it.Notes = append(it.Notes, "without its end mark: cut off, names may be missing")
		}
	case "environment":
		it.Fields = environment(s.buf)
		if it.Size > maxBlock {
			it.Notes = append(it.Notes, fmt.Sprintf("only its first %d bytes were read", maxBlock))
		}
		if end && s.left > 0 {
			it.Cut = true
			it.Notes = append(it.Notes, fmt.Sprintf("%d bytes are missing", s.left))
		}
	case "junk":
		it.Notes = append(it.Notes, fmt.Sprintf("not a message; it begins % x", s.buf[:min(len(s.buf), 16)]))
	}
	s.buf, s.tail = nil, nil
	return d.yield(it)
}

// open begins an item that has no length of its own.
func (d *decoder) open(c *conn, s *stream, kind string, left int64) {
	s.item = &Item{Conn: c.id, Direction: s.dir, Kind: kind, Offset: s.at, Ns: s.began}
	s.left = left
}

// message decodes what stands at the start of s.buf and returns its size, 0 if more bytes
// are needed. At the end of the recording it makes do with what there is.
func (d *decoder) message(c *conn, s *stream, end bool) (int, error) {
	b := s.buf
	wait := func(n int) bool { return len(b) < n && !end }
	if s.late {
		if wait(traceHead) && (bytes.HasPrefix([]byte(nettraceHead), b) || bytes.HasPrefix([]byte(netperfHead), b)) {
			return 0, nil
		}
		s.late = false
		if traceFormat(b) != "" {
			d.open(c, s, "trace", -1)
			return 0, nil
		}
	}
	switch {
	case bytes.HasPrefix(b, []byte(advertise)):
		if wait(advertSize) {
			return 0, nil
		}
		return d.advertisement(c, s)
	case s.dir == ToRuntime && !c.mixed && c.request != nil:
		d.open(c, s, "junk", -1) // a second request does not exist
		if c.request.userEvents() {
			s.item.Notes = append(s.item.Notes, "the byte that carries a file descriptor")
		}
		return 0, nil
	case bytes.HasPrefix(b, []byte(magic)), s.dir == ToRuntime && !c.mixed:
		if wait(headerSize) || len(b) >= headerSize && wait(messageSize(b)) {
			return 0, nil
		}
		if len(b) < headerSize {
			return d.cutHeader(c, s)
		}
		return d.whole(c, s)
	case !end && (bytes.HasPrefix([]byte(magic), b) || bytes.HasPrefix([]byte(advertise), b)):
		return 0, nil
	}
	return d.noMessage(c, s)
}

// messageSize is how long a message is, as its header says; no less than the header.
func messageSize(b []byte) int {
	return max(int(binary.LittleEndian.Uint16(b[14:])), headerSize)
}

// advertisement takes the runtime's call to a tool that waits.
func (d *decoder) advertisement(c *conn, s *stream) (int, error) {
	if s.dir == ToRuntime && !c.mixed && c.request == nil {
		// The proxy stood before a tool, and the runtime is who connected.
		c.streams[0].dir, c.streams[1].dir = ToTool, ToRuntime
	}
	it := d.item(c, s, "advertise", min(len(s.buf), advertSize))
	it.Direction, it.Name = ToTool, "advertise"
	decodeAdvertise(it, s.buf)
	return int(it.Size), d.yield(it)
}

// noMessage takes bytes that begin no message.
func (d *decoder) noMessage(c *conn, s *stream) (int, error) {
	// In one stream of both directions the next message may follow.
	if c.mixed {
		if i := bytes.Index(s.buf, []byte(magic)); i > 0 {
			it := d.item(c, s, "junk", i)
			it.Notes = []string{fmt.Sprintf("not a message; it begins % x", s.buf[:min(i, 16)])}
			return i, d.yield(it)
		}
	}
	d.open(c, s, "junk", -1)
	return 0, nil
}

// cutHeader takes a message of which the recording has no whole header.
func (d *decoder) cutHeader(c *conn, s *stream) (int, error) {
	it := d.item(c, s, "request", len(s.buf))
	it.Name, it.Cut = "(cut)", true
	if s.dir == ToTool && !c.mixed {
		it.Kind = "response"
	}
	it.Notes = append(it.Notes, fmt.Sprintf("the message ends within its header: %d of %d bytes", len(s.buf), headerSize))
	if it.Kind == "request" {
		c.request = it
	}
	return len(s.buf), d.yield(it)
}

// whole takes a request or an answer with its payload, or what the recording has of it.
func (d *decoder) whole(c *conn, s *stream) (int, error) {
	b, size := s.buf, messageSize(s.buf)
	it := d.item(c, s, "request", min(size, len(b)))
	it.Set, it.ID = int(b[16]), int(b[17])
	if s.dir == ToTool && !c.mixed || c.mixed && it.Set == setServer {
		it.Kind, it.Direction = "response", ToTool
	} else {
		it.Direction = ToRuntime
	}
	if string(b[:14]) != magic {
		it.Notes = append(it.Notes, fmt.Sprintf("unknown magic %q", bytes.TrimRight(b[:14], "\x00")))
	}
	if n := int(binary.LittleEndian.Uint16(b[14:])); n < headerSize {
		it.Notes = append(it.Notes, fmt.Sprintf("its size says %d bytes, which is less than a header", n))
	}
	if len(b) < size {
		it.Cut = true
		it.Notes = append(it.Notes, fmt.Sprintf("the message ends early: %d of %d bytes", len(b), size))
	}
	payload := b[headerSize:it.Size]
	if it.Kind == "request" {
		decodeRequest(it, payload)
		c.request = it
		return int(it.Size), d.yield(it)
	}
	decodeResponse(it, payload, c.request)
	if err := d.yield(it); err != nil {
		return 0, err
	}
	d.after(c, s, it)
	return int(it.Size), nil
}

// after decides what follows an answer: by the request, or where that is not in the
// recording by what the bytes look like.
func (d *decoder) after(c *conn, s *stream, it *Item) {
	req := c.request
	at := s.at
	s.at += it.Size
	defer func() { s.at = at }()
	switch {
	case it.ID != 0 || it.Cut:
	case req != nil && req.Set == setEventPipe && req.ID >= 2 && !req.userEvents():
		d.open(c, s, "trace", -1)
	case req != nil && req.Set == setProcess && req.ID == 2 && it.Size == headerSize+6:
		d.open(c, s, "environment", int64(fieldUint(it, "bytes")))
	case req == nil && it.Size == headerSize+8:
		s.late = true
	}
	if s.item != nil && s.item.Kind == "environment" && s.left == 0 {
		s.item = nil
	}
	if c.mixed && s.item == nil {
		c.request = nil // another connection may follow
	}
}

func (d *decoder) item(c *conn, s *stream, kind string, size int) *Item {
	return &Item{Conn: c.id, Direction: s.dir, Kind: kind, Offset: s.at, Ns: s.began, EndNs: s.began, Size: int64(size)}
}

// finish decodes what is left when the recording ends.
func (d *decoder) finish() error {
	for _, c := range d.order {
		for _, s := range c.streams {
			if err := d.messages(c, s, true, s.began); err != nil {
				return err
			}
			if s.item != nil {
				if s.item.Size == 0 && len(s.buf) > 0 {
					b := s.buf
					s.buf = nil
					if _, err := d.more(c, s, b, s.began); err != nil {
						return err
					}
				}
				if s.item != nil {
					if err := d.close(c, s, true); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}
