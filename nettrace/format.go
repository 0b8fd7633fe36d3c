package nettrace

import (
	"bytes"
	"encoding/binary"
)

// A blockKind is a kind of block of any version; the numbers are those of v6.
type blockKind uint8

const (
	kindEnd           blockKind = 0
	kindTrace         blockKind = 1
	kindEvent         blockKind = 2
	kindMetadata      blockKind = 3
	kindSequencePoint blockKind = 4
	kindStack         blockKind = 5
	kindThread        blockKind = 6
	kindRemoveThread  blockKind = 7
	kindLabelList     blockKind = 8
	kindUnknown       blockKind = 9
	numKinds                    = 10
)

// kindNames are the type names of v3 to v5, and for the rest of v6 what fits beside them.
var kindNames = [numKinds]string{"end of stream", "Trace", "EventBlock", "MetadataBlock", "SPBlock", "StackBlock",
	"ThreadBlock", "RemoveThreadBlock", "LabelListBlock", "unknown block"}

func (k blockKind) String() string { return kindNames[k] }

// kindNamed finds the kind of a block object of v3 to v5.
func kindNamed(name []byte) blockKind {
	for _, k := range [...]blockKind{kindEvent, kindStack, kindMetadata, kindSequencePoint, kindTrace} {
		if string(name) == kindNames[k] {
			return k
		}
	}
	if string(name) == oldTraceName {
		return kindTrace
	}
	return kindUnknown
}

const oldTraceName = "Microsoft.DotNet.Runtime.EventPipeFile" // v1, v2; the longest type name

// Tags of FastSerialization.
const (
	tagNull         = 1
	tagBegin        = 4 // v1 to v3
	tagBeginPrivate = 5 // v4
	tagEnd          = 6
)

// maxObject is the longest object header: tags, two versions, the name.
const maxObject = 3 + 4 + 4 + 4 + len(oldTraceName) + 1

// An object is what stands before each block of v1 to v5 (section 2.2).
type object struct {
	kind    blockKind
	name    string // of unknown kinds
	tag     uint8
	version int32
	minimum int32 // version of who reads it
	size    int   // of this header
}

// hit reports whether the name of an unknown kind is that of a known one but for a quarter of its
// bytes: rather than a kind of its own it is a name that damage has changed.
func (o *object) hit() bool {
	for _, name := range [...]string{kindNames[kindEvent], kindNames[kindStack], kindNames[kindMetadata], kindNames[kindSequencePoint], kindNames[kindTrace], oldTraceName} {
		others := 0
		for i := 0; i < len(name) && len(name) == len(o.name); i++ {
			if name[i] != o.name[i] {
				others++
			}
		}
		if others > 0 && others <= len(name)/4 {
			return true
		}
	}
	return false
}

// append appends the header of an object of an unknown kind as it was read.
func (o *object) append(dst []byte) []byte {
	dst = append(dst, o.tag, o.tag, tagNull)
	for _, n := range [...]uint32{uint32(o.version), uint32(o.minimum), uint32(len(o.name))} {
		dst = binary.LittleEndian.AppendUint32(dst, n)
	}
	return append(append(dst, o.name...), tagEnd)
}

// parseObject reads an object header.
func parseObject(b []byte) (o object, ok bool) {
	c := Cursor{b: b}
	tag, tag2, null := c.U8(), c.U8(), c.U8()
	o.tag, o.version, o.minimum = tag, c.I32(), c.I32()
	n := c.I32()
	if tag != tagBegin && tag != tagBeginPrivate || tag2 != tag || null != tagNull || n < 1 || int(n) > len(oldTraceName) {
		return o, false
	}
	name := c.Bytes(int(n))
	if c.U8() != tagEnd || c.err != nil {
		return o, false
	}
	o.kind, o.size = kindNamed(name), c.pos
	if o.kind == kindUnknown {
		for _, ch := range name { // a type name, not garbage
			if ch < ' ' || ch > '~' {
				return o, false
			}
		}
		o.name = string(name)
	}
	return o, true
}

// Signatures begin the header of a block object; in real files they occur nowhere else.
var (
	signatureV4 = []byte("\x05\x05\x01\x02\x00\x00\x00\x02\x00\x00\x00")
	signatureV3 = []byte("\x04\x04\x01\x01\x00\x00\x00\x00\x00\x00\x00\x0a\x00\x00\x00EventBlock\x06")
)

// findObject returns the position in b of the first header of a known block, -1 if there is none.
func findObject(b []byte, version int) int {
	sig := signatureV4
	if version == 3 {
		sig = signatureV3
	}
	for at := 0; ; {
		i := bytes.Index(b[at:], sig)
		if i < 0 {
			return -1
		}
		at += i
		if o, ok := parseObject(b[at:min(len(b), at+maxObject)]); ok && o.kind != kindUnknown && o.kind != kindTrace {
			return at
		}
		at++
	}
}
