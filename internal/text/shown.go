package text

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark stands for each character that is not shown as it is.
const Mark = '\uFFFD'

// hidden are the characters that a reader does not see or a terminal obeys: controls,
// and with them escape sequences; format characters, and with them those that turn the
// direction of text; separators of lines and paragraphs; what is invisible by definition
// (Unicode's Default_Ignorable_Code_Point); and noncharacters, which XML cannot hold.
var hidden = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
	unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point}

// Line is s as one line: a blank for each tab and line break, a Mark for each other
// character that is hidden or no UTF-8. It has as many characters as s.
func Line(s string) string {
	if plain(s) {
		return s
	}
	return strings.Map(line, s)
}

// Lines is Line for text of several lines: its tabs and line feeds stay.
func Lines(s string) string {
	if plain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return line(r)
	}, s)
}

// ShownWriter returns a writer that puts what goes to w through Lines.
func ShownWriter(w io.Writer) io.Writer { return &shownWriter{w: w} }

type shownWriter struct {
	w    io.Writer
	part []byte // of a character that the next Write ends
}

func (s *shownWriter) Write(p []byte) (int, error) {
	b := append(s.part, p...)
	whole := len(b)
	for i := 1; i < min(utf8.UTFMax, len(b)+1); i++ {
		if last := b[len(b)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= i
			}
			break
		}
	}
	if _, err := io.WriteString(s.w, Lines(string(b[:whole]))); err != nil {
		return 0, err
	}
	s.part = append(s.part[:0], b[whole:]...)
	return len(p), nil
}

// AppendedLine puts what stands in b from at on through Line.
func AppendedLine(b []byte, at int) []byte {
	if plain(b[at:]) {
		return b
	}
	return append(b[:at], Line(string(b[at:]))...)
}

func line(r rune) rune {
	switch {
	case r == '\n' || r == '\r' || r == '\t':
		return ' '
	case unicode.In(r, hidden...):
		return Mark
	}
	return r
}

// plain reports whether s is nothing but printable ASCII, as almost all text is.
func plain[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
