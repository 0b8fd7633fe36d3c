package collect

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	for want, line := range map[string]Line{
		"dotnet-trace collect -p PID":                                      {},
		"dotnet-trace collect -p 41 --profile dotnet-common":               {PID: 41, Profiles: []string{"dotnet-common"}},
		"dotnet-trace collect --diagnostic-port /tmp/socket":               {Port: "/tmp/socket"},
		"dotnet-trace collect-linux --perf-events sched:switch":            {Linux: true, PerfEvents: "sched:switch"},
		`dotnet-trace collect-linux --perf-events "sched:switch,irq:exit"`: {Linux: true, PerfEvents: "sched:switch,irq:exit"},
		`dotnet-trace collect -p PID --profile gc-verbose --providers "A:0xFFFFFFFFFFFFFFFF:4,` + ActivityIDs + `"`: {
			Profiles: []string{"gc-verbose"}, Providers: []string{All("A"), ActivityIDs},
		},
		// Without a specification the bridge tells of no span.
		`dotnet-trace collect -p PID --providers "Microsoft-Diagnostics-DiagnosticSource:0x3:5:FilterAndPayloadSpecs=[AS]*"`: {Providers: []string{All("Microsoft-Diagnostics-DiagnosticSource")}},
		`dotnet-trace collect -p PID --providers "Bridge:0x3:5:Specs=[AS]*"`:                                                 {Providers: []string{`Bridge:0x3:5:Specs=[AS]*`}},
		`dotnet-trace collect -p PID --providers 'Bridge:0x3:5:Specs=\"a=b;c\nd\"'`:                                          {Providers: []string{`Bridge:0x3:5:Specs="a=b;c\nd"`}},
	} {
		assert.Equal(t, want, line.String())
	}
}

// sh makes the words of a line that dotnet-trace is to get.
func TestShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	line := Line{Profiles: []string{"a", "b"}, Providers: []string{"A:0x1:4", `Bridge:0x3:5:Specs="a=b;c\nd"`, "$HOME`id`!%PATH%"}}
	out, err := exec.CommandContext(t.Context(), sh, "-c", strings.Replace(line.String(), "dotnet-trace", `printf '<%s>'`, 1)).Output()
	require.NoError(t, err)
	assert.Equal(t, "<collect><-p><PID><--profile><a,b><--providers><A:0x1:4,Bridge:0x3:5:Specs=\\\"a=b;c\\nd\\\",$HOME`id`!%PATH%>", string(out))
}

// Who recorded a machine records it again, and its samples with the profile that takes them there.
func TestFor(t *testing.T) {
	for _, c := range []struct {
		line           Line
		collect, linux string
	}{
		{Samples, `collect -p PID --profile "dotnet-common,dotnet-sampled-thread-time"`, `collect-linux --profile "dotnet-common,cpu-sampling"`},
		{Line{Profiles: []string{Sampled}, Waits: true}, "collect -p PID --profile dotnet-sampled-thread-time", `collect-linux --profile "cpu-sampling,thread-time"`},
		{Line{PID: 7, Providers: []string{"A:0x80:4"}, Waits: true}, "collect -p 7 --providers A:0x80:4", "collect-linux -p 7 --providers A:0x80:4"},
		{OffCPU, `collect-linux --profile "dotnet-common,cpu-sampling,thread-time"`, `collect-linux --profile "dotnet-common,cpu-sampling,thread-time"`},
	} {
		assert.Equal(t, "dotnet-trace "+c.collect, c.line.For(0))
		assert.Equal(t, "dotnet-trace "+c.collect, c.line.For(5))
		assert.Equal(t, "dotnet-trace "+c.linux, c.line.For(6))
	}
}
