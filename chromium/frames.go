package chromium

import (
	"bytes"
	"fmt"
)

// A StackFrame is an entry of the top-level key stackFrames, as raw JSON text.
type StackFrame struct {
	Offset   int64  // of the entry's key in the input
	ID       []byte // the key without its quotes
	Name     []byte // without its quotes; nil if missing or no string
	Category []byte // without its quotes; nil if missing or no string
	Parent   []byte // number or string with its quotes; nil for a root
}

// readFrames reads the entries of stackFrames, whose brace is behind it.
func (r *Reader) readFrames() error {
	if err := r.pass(); err != nil {
		return err
	}
	r.open = append(r.open, '{')
	r.inFrames, r.frames = true, 0
	for {
		c, ok, err := r.peek()
		switch {
		case err != nil:
			return err
		case !ok:
			return r.cut(r.base+int64(r.end), fmt.Sprintf("stackFrames[%d]", r.frames))
		case c == ',':
			r.pos++
		case c == '}':
			if i := bytes.IndexByte(r.buf[r.mark:r.pos], ','); i >= 0 {
				if err := r.warn(r.base+int64(r.mark+i), "stackFrames", ErrComma); err != nil {
					return err
				}
				if err := r.outside(bytes.ReplaceAll(r.buf[r.mark:r.pos], []byte{','}, nil)); err != nil {
					return err
				}
				r.mark = r.pos
			} else if err := r.pass(); err != nil {
				return err
			}
			if err := r.framesEnd(); err != nil {
				return err
			}
			r.open = r.open[:len(r.open)-1]
			r.pos++
			return r.pass()
		case c == '"':
			if err := r.separate("stackFrames", r.frames == 0); err != nil {
				return err
			}
			if err := r.readFrame(); err != nil {
				return err
			}
			if !r.inFrames { // broken, and something else is at hand
				return nil
			}
		default:
			if err := r.brokenFrame(r.pos); err != nil {
				return err
			}
		}
	}
}

// framesEnd lets the caller add entries.
func (r *Reader) framesEnd() error {
	r.inFrames, r.owed = false, false
	if r.opts.StackFramesEnd == nil {
		return nil
	}
	return r.opts.StackFramesEnd(r.frames)
}

// readFrame reads the entry whose key is at pos.
func (r *Reader) readFrame() error {
	s := &r.scan
	for {
		b := r.buf[r.pos:r.end]
		s.loose = false
		var f StackFrame
		n := s.frame(b, &f)
		if n == needMore {
			if r.more(r.opts.MaxEventSize) {
				continue
			}
			if r.srcErr != nil {
				return r.srcErr
			}
			if r.eof {
				return r.cut(r.base+int64(r.end), fmt.Sprintf("stackFrames[%d]", r.frames))
			}
			r.frames++
			return r.skipValue("stackFrames", true)
		}
		if n == badJSON {
			at := s.at
			if r.affords() {
				s.quotes = true
				n = r.try(func(b []byte) (n int) {
					f, s.loose = StackFrame{}, false
					n = s.frame(b, &f)
					return n
				})
				if r.srcErr != nil {
					return r.srcErr
				}
				b = r.buf[r.pos:r.end]
			}
			if n < 0 {
				s.quotes = false
				return r.brokenFrame(r.pos + at)
			}
		}
		if n < 0 {
			return &FormatError{Offset: r.base + int64(r.pos+s.at), Where: "stackFrames", Err: ErrTooDeep}
		}
		f.Offset = r.base + int64(r.pos)
		fault := textFault{}
		if !r.opts.Checked {
			fault = faultOf(b[:n])
		}
		if fault.odd = fault.odd || s.loose; fault != (textFault{}) {
			if err := r.tellFault(f.Offset, fmt.Sprintf("stackFrames[%d]", r.frames), fault); err != nil {
				return err
			}
			if err := r.pass(); err != nil {
				return err
			}
			r.fixed = s.fix(r.fixed[:0], b[:n])
			s.quotes = false
			if err := r.outside(r.fixed); err != nil {
				return err
			}
			r.pos += n
			r.mark = r.pos
			f = StackFrame{Offset: f.Offset}
			s.frame(r.fixed, &f)
		} else {
			r.pos += n
			if err := r.pass(); err != nil {
				return err
			}
		}
		r.frames++
		if r.opts.StackFrame != nil {
			return r.opts.StackFrame(&f)
		}
		return nil
	}
}

// frame scans the member at b[0]: a key and an object.
func (s *scanner) frame(b []byte, f *StackFrame) int {
	j := stringEnd(b, 1)
	if j < 0 {
		return j
	}
	f.ID = b[1:j]
	i := skipSpace(b, j+1)
	if i == len(b) {
		return needMore
	}
	if b[i] != ':' {
		s.at = i
		return badJSON
	}
	i = skipSpace(b, i+1)
	if i == len(b) {
		return needMore
	}
	if b[i] != '{' {
		return s.value(b, i)
	}
	return s.object(b, i, f)
}

// object scans the object at b[i] for the values of f.
func (s *scanner) object(b []byte, i int, f *StackFrame) int {
	i++
	comma, first := true, true
	for {
		i = skipSpace(b, i)
		if i == len(b) {
			return needMore
		}
		switch c := b[i]; {
		case c == ',':
			if comma {
				s.loose = true
			}
			comma = true
			i++
			continue
		case c == '}':
			if comma && !first {
				s.loose = true
			}
			return i + 1
		case c != '"' || !comma:
			s.at = i
			return badJSON
		}
		j := s.stringEnd(b, i+1)
		if j < 0 {
			return j
		}
		k := b[i+1 : j]
		i = skipSpace(b, j+1)
		if i == len(b) {
			return needMore
		}
		if b[i] != ':' {
			s.at = i
			return badJSON
		}
		from := skipSpace(b, i+1)
		if i = s.value(b, from); i < 0 {
			return i
		}
		v := b[from:i]
		switch string(k) {
		case "name":
			f.Name = inString(v)
		case "category":
			f.Category = inString(v)
		case "parent":
			f.Parent = v
		}
		comma, first = false, false
	}
}

// brokenFrame skips the entry at pos, which is broken at buf[at], up to what
// looks like the next one.
func (r *Reader) brokenFrame(at int) error {
	off := r.base + int64(at)
	if err := r.warn(off, fmt.Sprintf("stackFrames[%d]", r.frames), ErrSyntax); err != nil {
		return err
	}
	r.pos = max(at, r.pos)
	r.mark, r.owed = r.pos, false
	for {
		for r.pos < r.end && r.buf[r.pos] != '}' {
			r.pos++
		}
		r.mark = r.pos
		end := min(r.end, r.pos+maxTry)
		i := skipSpace(r.buf[:end], min(r.pos+1, end))
		switch {
		case i < end && (r.buf[i] == '}' || r.buf[i] == ','):
			r.pos = i
			r.mark = i
			if r.buf[i] == ',' && r.frames == 0 {
				r.pos++
				r.mark++
			}
			return nil
		case i == r.end && r.more(1<<30):
			continue
		case r.srcErr != nil:
			return r.srcErr
		case r.pos == r.end:
			return r.cut(off, "stackFrames")
		}
		r.pos++
	}
}
