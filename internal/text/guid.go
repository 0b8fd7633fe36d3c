package text

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// ParseGUID reads a GUID as .NET prints it, upper or lower case, in braces or without. The result has the
// order of memory and of traces, in which the first three numbers have their lowest byte first.
func ParseGUID(s string) (id [16]byte, err error) {
	t := strings.Trim(s, "{}")
	if len(t) != 36 || t[8] != '-' || t[13] != '-' || t[18] != '-' || t[23] != '-' {
		return id, fmt.Errorf("%q is not a GUID", s)
	}
	var o [16]byte
	if _, err := hex.Decode(o[:], []byte(t[:8]+t[9:13]+t[14:18]+t[19:23]+t[24:])); err != nil {
		return id, fmt.Errorf("%q is not a GUID: %w", s, err)
	}
	id = o
	id[0], id[1], id[2], id[3] = o[3], o[2], o[1], o[0]
	id[4], id[5], id[6], id[7] = o[5], o[4], o[7], o[6]
	return id, nil
}
