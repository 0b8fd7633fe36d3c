package text

import "strings"

// ShellWord is s as a shell takes it for one word, for commands that people copy.
func ShellWord(s string) string {
	safe := s != ""
	for _, r := range s {
		if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_-./:\\@%+,=", r) || r > 0x7f) {
			safe = false
		}
	}
	if safe {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
