package chromium

import "bytes"

// AppendReplaced appends the text of an event, as in Event.Raw, with another value of a key,
// which is JSON text. An event that lacks the key gets it behind the others.
func AppendReplaced(dst, raw []byte, key string, value []byte) []byte {
	s := scanner{maxDepth: DefaultMaxDepth}
	from, i, found := 0, 1, false
	for i < len(raw) {
		for i < len(raw) && (isSpace(raw[i]) || raw[i] == ',') {
			i++
		}
		if i == len(raw) || raw[i] != '"' {
			break
		}
		j := stringEnd(raw, i+1)
		if j < 0 {
			break
		}
		at := skipSpace(raw, j+1)
		if at == len(raw) || raw[at] != ':' {
			break
		}
		at = skipSpace(raw, at+1)
		end := s.value(raw, at)
		if end < 0 {
			break
		}
		if Unquote(raw[i+1:j]) == key {
			dst = append(append(dst, raw[from:at]...), value...)
			from, found = end, true
		}
		i = end
	}
	if found {
		return append(dst, raw[from:]...)
	}
	colon, comma := Separators(raw)
	dst = append(append(dst, raw[:len(raw)-1]...), comma...)
	dst = append(append(AppendQuoted(dst, key), colon...), value...)
	return append(dst, '}')
}

// Separators returns how the keys and values of an event are set apart.
func Separators(raw []byte) (colon, comma string) {
	if bytes.Contains(raw, []byte(`": `)) {
		return ": ", ", "
	}
	return ":", ","
}
