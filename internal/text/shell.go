package text

import (
	"runtime"
	"strings"
)

// ShellWord is a file's name as a shell of this system takes it for one word, for commands that people copy;
// one that would be read as a flag begins with the folder.
func ShellWord(s string) string {
	if len(s) > 1 && s[0] == '-' {
		s = "./" + s
	}
	if runtime.GOOS == "windows" {
		return windowsWord(s)
	}
	if plainWord(s, "_-./:\\@%+,=") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// AnyShellWord is s as sh, cmd and PowerShell take it for one word, for commands that are run
// elsewhere than they are read. Lists with commas are quoted for scripts and functions of
// PowerShell; to a program it hands a list without blanks on as it stands. What double quotes do
// not hold in sh or PowerShell is in single ones, which cmd does not know.
func AnyShellWord(s string) string {
	switch {
	case plainWord(s, "_-./:+="):
		return s
	case !strings.ContainsAny(s, "\"$`!\\%"+typographic):
		return `"` + s + `"`
	case !strings.ContainsAny(s, "'"+typographic):
		return "'" + s + "'"
	}
	return ShellWord(s)
}

// typographic quotes are quotes in PowerShell.
const typographic = "‘’‚‛“”„"

// windowsWord is s as both cmd and PowerShell take it, as far as there is such a thing.
func windowsWord(s string) string {
	switch {
	case plainWord(s, "_-./:\\+=") && !strings.ContainsAny(s, typographic):
		return s
	case strings.ContainsAny(s, "\"$`“”„"): // cmd has no way to say that
		for _, quote := range []string{"'", "‘", "’", "‚", "‛"} {
			s = strings.ReplaceAll(s, quote, quote+quote)
		}
		return "'" + s + "'"
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
