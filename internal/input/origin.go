package input

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tracefix/tracefix/nettrace"
)

// An Origin is what a trace tells of the process that was recorded, as far as it has been
// read: the runtime tells most of it at the end. It is a Consumer; its methods may be
// called from several goroutines at once.
type Origin struct {
	mu               sync.Mutex
	command, runtime string
}

// Begin implements Consumer.
func (o *Origin) Begin(*nettrace.Reader) {}

// Event implements Consumer.
func (o *Origin) Event(ev *nettrace.Event) error {
	switch ev.Metadata.Role {
	case nettrace.RoleProcessInfo:
		c := ev.Cursor()
		o.set(c.UTF16().String(), "")
	case nettrace.RoleRuntimeInformation:
		o.set(RuntimeInformation(ev))
	}
	return nil
}

// End implements Consumer.
func (o *Origin) End() {}

func (o *Origin) set(command, runtime string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if command != "" {
		o.command = command
	}
	if runtime != "" {
		o.runtime = runtime
	}
}

// Told returns the command line and the version of the runtime; "" if not told yet.
func (o *Origin) Told() (command, runtime string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.command, o.runtime
}

// RuntimeInformation reads what a runtime says of itself: the command line, and its
// version. The path of its library names that best; numbers in the event follow another
// count (nettrace.md section 10.2).
func RuntimeInformation(ev *nettrace.Event) (command, version string) {
	c := ev.Cursor()
	c.Skip(4)
	bcl := [3]uint16{c.U16(), c.U16(), c.U16()}
	c.Skip(2)
	vm := [3]uint16{c.U16(), c.U16(), c.U16()}
	c.Skip(2 + 4 + 1)
	command = c.UTF16().String()
	c.Skip(16)
	version = versionInPath(c.UTF16().String())
	switch {
	case version != "":
	case bcl[0] >= 5:
		version = fmt.Sprintf("%d.%d.%d", bcl[0], bcl[1], bcl[2])
	case vm[0] >= 5:
		version = fmt.Sprintf("%d.%d", vm[0], vm[1])
	}
	return command, version
}

// versionInPath finds the version in the path of a shared runtime's library:
// .../Microsoft.NETCore.App/10.0.12/libcoreclr.so.
func versionInPath(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	for i := 1; i < len(parts)-1; i++ {
		if strings.EqualFold(parts[i-1], "Microsoft.NETCore.App") {
			return parts[i]
		}
	}
	return ""
}

// ProcessName is the program that a command line starts: the file without directory
// and extension, of `dotnet app.dll` that of the dll.
func ProcessName(cmd string) string {
	words := splitCommand(cmd)
	if len(words) == 0 {
		return ""
	}
	name := ProgramName(words[0])
	if strings.EqualFold(name, "dotnet") {
		for _, w := range words[1:] {
			if strings.HasSuffix(strings.ToLower(w), ".dll") {
				return ProgramName(w)
			}
		}
	}
	return name
}

// ProgramName is a file without directory and the extension of a program.
func ProgramName(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	if n := len(path) - 4; n > 0 {
		if e := strings.ToLower(path[n:]); e == ".dll" || e == ".exe" {
			return path[:n]
		}
	}
	return path
}

// splitCommand splits at blanks outside double quotes, which it removes.
func splitCommand(cmd string) []string {
	var words []string
	var w strings.Builder
	quoted, any := false, false
	for _, r := range cmd {
		switch {
		case r == '"':
			quoted, any = !quoted, true
		case r == ' ' && !quoted:
			if any {
				words = append(words, w.String())
				w.Reset()
				any = false
			}
		default:
			w.WriteRune(r)
			any = true
		}
	}
	if any {
		words = append(words, w.String())
	}
	return words
}
