// Package collect writes the command lines of dotnet-trace that record what a trace lacks: how its flags go together, how
// the shell takes them, and with which keywords a provider tells all.
package collect

import (
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// ActivityIDs is the provider that tells which events belong together across awaits.
const ActivityIDs = "System.Threading.Tasks.TplEventSource:0x80:4"

// All is a provider with all keywords. They are spelled out, as .NET 5 to 7 drop events where a mask has no bit in
// common with those of the event (http-events.md section 2).
func All(provider string) string { return provider + ":0xFFFFFFFFFFFFFFFF:4" }

// A Line is a command line. The zero value records what dotnet-trace does by itself.
type Line struct {
	Linux      bool     // by collect-linux: the whole machine's CPU samples and events of the kernel
	PID        int      // 0: not known, and the word PID stands in its place; of the whole machine none does
	Profile    string   // one or several, with commas
	PerfEvents string   // of collect-linux
	Providers  []string // as --providers has them: a \n in one is the end of a line
}

// String returns the line for the shell of this system.
func (l Line) String() string {
	line := "dotnet-trace collect"
	if l.Linux {
		line += "-linux"
	}
	switch {
	case l.PID > 0:
		line += " -p " + strconv.Itoa(l.PID)
	case !l.Linux:
		line += " -p PID"
	}
	if l.Profile != "" {
		line += " --profile " + l.Profile
	}
	if l.PerfEvents != "" {
		line += " --perf-events " + l.PerfEvents
	}
	switch list := strings.Join(l.Providers, ","); {
	case list == "":
	case strings.Contains(list, `\n`):
		line += " --providers $'" + list + "'" // $: the shell makes lines of \n
	default:
		line += " --providers " + text.ShellWord(list)
	}
	return line
}
