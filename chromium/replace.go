package chromium

import "bytes"

// AppendReplaced appends the text of an event, as in Event.Raw, with another value of a key,
// which is JSON text. An event that lacks the key gets it behind the others.
func AppendReplaced(dst, raw []byte, key string, value []byte) []byte {
	if from, to := plainValue(raw, key); to > 0 {
		return append(append(append(dst, raw[:from]...), value...), raw[to:]...)
	}
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

// plainValue finds the value of a key in an event that holds neither objects nor escapes, if the
// key's text stands there once and the value is a string or a number; else to is 0.
func plainValue(raw []byte, key string) (from, to int) {
	if bytes.IndexByte(raw, '\\') >= 0 || bytes.IndexByte(raw[1:], '{') >= 0 {
		return 0, 0
	}
	quoted := append(append(append(make([]byte, 0, 16), '"'), key...), '"')
	at := bytes.Index(raw, quoted)
	if at < 0 {
		return 0, 0
	}
	if at += len(quoted); bytes.Contains(raw[at:], quoted) {
		return 0, 0
	}
	if at = skipSpace(raw, at); at == len(raw) || raw[at] != ':' {
		return 0, 0
	}
	from = skipSpace(raw, at+1)
	to = from
	if from < len(raw) && raw[from] == '"' {
		return from, stringEnd(raw, from+1) + 1
	}
	for to < len(raw) && literalByte[raw[to]] {
		to++
	}
	if to == from {
		return 0, 0
	}
	return from, to
}

// Separators returns how the keys and values of an event are set apart.
func Separators(raw []byte) (colon, comma string) {
	if bytes.Contains(raw, []byte(`": `)) {
		return ": ", ", "
	}
	return ":", ","
}
