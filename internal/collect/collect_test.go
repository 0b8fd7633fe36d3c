package collect

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/text"
)

func TestLine(t *testing.T) {
	for want, line := range map[string]Line{
		"dotnet-trace collect -p PID":                           {},
		"dotnet-trace collect -p 41 --profile dotnet-common":    {PID: 41, Profile: "dotnet-common"},
		"dotnet-trace collect-linux --perf-events sched:switch": {Linux: true, PerfEvents: "sched:switch"},
		"dotnet-trace collect -p PID --profile gc-verbose --providers " + text.ShellWord("A:0xFFFFFFFFFFFFFFFF:4,"+ActivityIDs): {
			Profile: "gc-verbose", Providers: []string{All("A"), ActivityIDs},
		},
		"dotnet-trace collect -p PID --providers " + text.ShellWord(`Bridge:0x3:5:Specs="[AS]*"`): {Providers: []string{`Bridge:0x3:5:Specs="[AS]*"`}},
		`dotnet-trace collect -p PID --providers $'Bridge:0x3:5:Specs="a\nb"'`:                    {Providers: []string{`Bridge:0x3:5:Specs="a\nb"`}},
	} {
		assert.Equal(t, want, line.String())
	}
}
