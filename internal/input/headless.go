package input

import (
	"bytes"
	"io"
)

// Content whose beginning cannot be unpacked, or not as it was, is known by what stands behind it:
// the objects of a nettrace up to version 5 have names, and events of Chromium JSON have phases.
// Readers get the beginning of such a file in place of what stands there, and find the first whole
// block or event behind it as they do in any damaged file.

// lookBehind is how much of what can be unpacked is looked at.
const lookBehind = 64 << 20

// lookAgain is how much of a part is looked at with the next one: more than what tells a kind takes.
const lookAgain = 256

const (
	nettraceHead = nettraceMagic + "\x14\x00\x00\x00!FastSerialization.1"
	chromiumHead = `{"traceEvents":[`
)

// blockNames are how the objects of a nettrace begin: the length of the name, the name, and a tag.
var blockNames = []string{"\x0a\x00\x00\x00EventBlock\x06", "\x0a\x00\x00\x00StackBlock\x06", "\x0d\x00\x00\x00MetadataBlock\x06", "\x07\x00\x00\x00SPBlock\x06"}

// behead looks for what content without its beginning is, and reports whether that was found.
func (f *File) behead() bool {
	if !f.failed.Load() || len(f.Layers) != 1 || f.beheaded.Load() == nil && Foreign(f.Head()) != "" {
		return false
	}
	defer f.read.Store(0)
	r, err := f.Reader()
	if err != nil {
		return false
	}
	defer r.Close()
	buf := make([]byte, 1<<20)
	held := 0
	for looked := 0; looked < lookBehind && err == nil; {
		var n int
		n, err = r.Read(buf[held:])
		looked += n
		held += n
		f.Kind, f.crown = withoutHead(buf[:held])
		if f.Kind != Unknown {
			return true
		}
		if held == len(buf) || err != nil {
			held = copy(buf, buf[max(0, held-lookAgain):held])
		}
	}
	return false
}

// withoutHead tells what a part of content is of, and how such a file begins.
func withoutHead(b []byte) (Kind, string) {
	for _, name := range blockNames {
		if bytes.Contains(b, []byte(name)) {
			return Nettrace, nettraceHead
		}
	}
	for _, phase := range []string{`"ph":"`, `"ph": "`} {
		if at := bytes.Index(b, []byte(phase)); at >= 0 && bytes.Contains(b, []byte(`"ts":`)) {
			return Chromium, chromiumHead
		}
	}
	return Unknown, ""
}

// A crowned reader gives other bytes in place of the first ones.
type crowned struct {
	r    io.Reader
	head string
}

func (c *crowned) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.head = c.head[copy(p[:n], c.head):]
	return n, err
}
