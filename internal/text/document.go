package text

import (
	"bytes"
	"encoding/json"
	"io"
)

// WriteDocument writes v as JSON with a line end behind it, indented unless indent is empty.
// It is for documents of ours that are small or bounded. <, > and & stay as they are: only in
// a page would they have to be escaped.
func WriteDocument(w io.Writer, v any, indent string) error { return WritePart(w, v, "", indent) }

// WritePart is WriteDocument for a part of a document: all lines but the first begin with prefix.
func WritePart(w io.Writer, v any, prefix, indent string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	return e.Encode(v)
}

// AppendDocument appends v as WriteDocument writes it on one line, without a line end.
func AppendDocument(dst []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	if err := WriteDocument(b, v, ""); err != nil {
		return dst, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
