package text

import (
	"runtime"
	"strings"
)

// ShellWord is s as a shell of this system takes it for one word, for commands that people copy.
func ShellWord(s string) string {
	if runtime.GOOS == "windows" {
		return windowsWord(s)
	}
	if plainWord(s, "_-./:\\@%+,=") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// windowsWord is s as both cmd and PowerShell take it, as far as there is such a thing.
func windowsWord(s string) string {
	switch {
	case plainWord(s, "_-./:\\+="):
		return s
	case strings.ContainsAny(s, "\"$`"): // cmd has no way to say that
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	end := len(s) - len(strings.TrimRight(s, `\`)) // a backslash before a quote is doubled
	return `"` + s + s[len(s)-end:] + `"`
}

// plainWord reports whether s holds nothing but letters, digits and what is marked as harmless.
func plainWord(s, harmless string) bool {
	for _, r := range s {
		if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(harmless, r) || r > 0x7f) {
			return false
		}
	}
	return s != ""
}
