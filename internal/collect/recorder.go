package collect

import "strings"

// For makes of a line with a command of `dotnet-trace collect` the one for who recorded a nettrace of that version. Of 6
// that is collect-linux, which takes the same providers and profiles but that of the runtime's own sampler, needs no
// process, and records all that there are (CollectLinuxCommand.cs of dotnet/diagnostics).
func For(version int, line string) string {
	if version < 6 {
		return line
	}
	return forLinux.Replace(strings.ReplaceAll(line, " -p PID", ""))
}

var forLinux = strings.NewReplacer("dotnet-trace collect ", "dotnet-trace collect-linux ", "dotnet-sampled-thread-time", "cpu-sampling")
