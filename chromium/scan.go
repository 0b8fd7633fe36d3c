package chromium

import "bytes"

// Negative results of the scanning functions, which otherwise return the
// index behind what they scanned.
const (
	needMore = -1 // the bytes end inside the value
	badJSON  = -2 // scanner.at says where
	tooDeep  = -3
)

// A scanner walks over JSON values without recursion.
//
// It is lenient where real files are: trailing and doubled commas, odd numbers
// and NaN are accepted and noted in loose. With quotes set, a quote ends a
// string only if the next byte that is not blank is one of , : } ].
type scanner struct {
	at       int  // of the fault, after badJSON
	loose    bool // the value is no valid JSON, but fix can make it so
	quotes   bool
	maxDepth int
	kinds    bitStack
}

// A bitStack holds one bit per open bracket: set for an object.
type bitStack struct {
	words []uint64
	n     int
}

func (s *bitStack) push(object bool) {
	if s.n>>6 == len(s.words) {
		s.words = append(s.words, 0)
	}
	bit := uint64(1) << (s.n & 63)
	if object {
		s.words[s.n>>6] |= bit
	} else {
		s.words[s.n>>6] &^= bit
	}
	s.n++
}

func (s *bitStack) top() (object bool) {
	return s.words[(s.n-1)>>6]>>((s.n-1)&63)&1 != 0
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t'
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// stringEnd returns the index of the quote that ends the string whose opening
// quote is b[i-1], or needMore.
func stringEnd(b []byte, i int) int {
	for {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return needMore
		}
		j += i
		k := j - 1
		for b[k] == '\\' { // the opening quote stops it
			k--
		}
		if (j-1-k)&1 == 0 {
			return j
		}
		i = j + 1
	}
}

// stringEnd is the plain search, or the lenient one if s.quotes.
func (s *scanner) stringEnd(b []byte, i int) int {
	for {
		j := stringEnd(b, i)
		if j < 0 || !s.quotes {
			return j
		}
		k := skipSpace(b, j+1)
		if k == len(b) {
			return needMore
		}
		switch b[k] {
		case ',', ':', '}', ']':
			return j
		}
		s.loose = true
		i = j + 1
	}
}

// literalByte says which bytes belong to numbers and words.
var literalByte = func() (t [256]bool) {
	for c := range 256 {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			c == '-' || c == '+' || c == '.' || c == '_'
	}
	return t
}()

// literal scans the number or word at b[i].
func (s *scanner) literal(b []byte, i int) int {
	j := i
	for j < len(b) && literalByte[b[j]] {
		j++
	}
	if j == len(b) {
		return needMore
	}
	if j == i {
		s.at = i
		return badJSON
	}
	if !validLiteral(b[i:j]) {
		s.loose = true
	}
	return j
}

func validLiteral(b []byte) bool {
	switch string(b) {
	case "true", "false", "null":
		return true
	}
	return validNumber(b)
}

func validNumber(b []byte) bool {
	i := 0
	digits := func() bool {
		j := i
		for i < len(b) && b[i]-'0' < 10 {
			i++
		}
		return i > j
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return false
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(b)
}

// value scans the JSON value at b[i], blanks before it included.
func (s *scanner) value(b []byte, i int) int {
	s.kinds.n = 0
	first := false // directly behind an opening bracket
	for {
		// A value is due at i.
		i = skipSpace(b, i)
		if i == len(b) {
			return needMore
		}
		switch c := b[i]; c {
		case '"':
			j := s.stringEnd(b, i+1)
			if j < 0 {
				return j
			}
			i = j + 1
		case '{', '[':
			if s.kinds.n == s.maxDepth {
				s.at = i
				return tooDeep
			}
			s.kinds.push(c == '{')
			i++
			first = true
			goto member
		default:
			if i = s.literal(b, i); i < 0 {
				return i
			}
		}
		if s.kinds.n == 0 {
			return i
		}
		first = false

	member: // behind an opening bracket or a member
		object := s.kinds.top()
		comma := first
		for {
			i = skipSpace(b, i)
			if i == len(b) {
				return needMore
			}
			if b[i] != ',' {
				break
			}
			if comma {
				s.loose = true
			}
			comma = true
			i++
		}
		if b[i] == '}' && object || b[i] == ']' && !object {
			if comma && !first {
				s.loose = true
			}
			i++
			s.kinds.n--
			if s.kinds.n == 0 {
				return i
			}
			first = false
			goto member
		}
		if !comma {
			s.at = i
			return badJSON
		}
		if object {
			if b[i] != '"' {
				s.at = i
				return badJSON
			}
			j := s.stringEnd(b, i+1)
			if j < 0 {
				return j
			}
			i = skipSpace(b, j+1)
			if i == len(b) {
				return needMore
			}
			if b[i] != ':' {
				s.at = i
				return badJSON
			}
			i++
		}
	}
}
