// Package collect writes the command lines of dotnet-trace that record what a trace lacks: what
// records it, how its flags go together, how the shell takes them, and with which keywords a
// provider tells all.
package collect

import (
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// A Line is a command line. The zero value records what dotnet-trace does by itself.
type Line struct {
	Linux      bool     // by collect-linux: the whole machine's CPU samples and events of the kernel
	PID        int      // 0: not known, and the word PID stands in its place; of the whole machine none does
	Port       string   // a diagnostic port, as --diagnostic-port has it, in place of a process
	Profiles   []string // those of dotnet-trace collect; see Sampled
	Waits      bool     // beside Sampled also when threads leave their CPUs, which only collect-linux records
	PerfEvents string   // of collect-linux: one or several, with commas
	Providers  []string // as --providers has them: a \n in one is the end of a line
}

// Sampled is the profile of the runtime's own sampler. collect-linux does not take it and has two
// of its own in its place.
const Sampled = "dotnet-sampled-thread-time"

// For returns the line for who recorded a nettrace of that version, as any shell takes it. Of 6
// that is collect-linux, which takes the same providers and profiles but Sampled, needs no process,
// and records all that there are (CollectLinuxCommand.cs of dotnet/diagnostics).
func (l *Line) For(version int) string {
	linux := l.Linux || version >= 6
	line := "dotnet-trace collect"
	if linux {
		line += "-linux"
	}
	if target := l.target(linux); target != "" {
		line += " " + target
	}
	if len(l.Profiles) > 0 {
		line += " --profile " + word(l.profiles(linux))
	}
	if l.PerfEvents != "" {
		line += " --perf-events " + text.AnyShellWord(l.PerfEvents)
	}
	if len(l.Providers) > 0 {
		line += " --providers " + word(l.Providers)
	}
	return line
}

// word is a list as one word of any shell: who reads a line often runs it on another system. A
// quote is \", as Windows PowerShell drops bare ones; dotnet-trace takes that, and \n, for what
// they mean (Regex.Unescape in ProviderUtils.cs).
func word(list []string) string {
	return text.AnyShellWord(strings.ReplaceAll(strings.Join(list, ","), `"`, `\"`))
}

// String returns the line where nothing is known of who recorded.
func (l *Line) String() string { return l.For(0) }

// Target is what of the line says whom to record; "" is the whole machine.
func (l *Line) Target() string { return l.target(l.Linux) }

func (l *Line) target(linux bool) string {
	switch {
	case l.Port != "":
		return "--diagnostic-port " + text.ShellWord(l.Port) // which is on this system
	case l.PID > 0:
		return "-p " + strconv.Itoa(l.PID)
	case linux:
		return ""
	}
	return "-p PID"
}

// profiles are the line's as its command calls them.
func (l *Line) profiles(linux bool) (list []string) {
	for _, p := range l.Profiles {
		switch {
		case !linux || p != Sampled:
		case l.Waits:
			p = "cpu-sampling,thread-time"
		default:
			p = "cpu-sampling"
		}
		list = append(list, p)
	}
	return list
}
