package command

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/internal/text"
)

// What is said to open an output opens it: most viewers unpack gzip or nothing.
func TestOpens(t *testing.T) {
	for name, want := range map[string]string{
		"a.chromium.json":       "open it in https://ui.perfetto.dev, or run `tracefix view a.chromium.json`",
		"a.chromium.json.gz":    "open it in https://ui.perfetto.dev, or run `tracefix view a.chromium.json.gz`",
		"a.chromium.json.zst":   "unpack it and open it in https://ui.perfetto.dev, or run `tracefix view a.chromium.json.zst`",
		"a.speedscope.json.gz":  "open it in https://www.speedscope.app, or run `tracefix view a.speedscope.json.gz`",
		"a.speedscope.json.zst": "unpack it and open it in https://www.speedscope.app, or run `tracefix view a.speedscope.json.zst`",
		"a.pftrace.gz":          "open it in https://ui.perfetto.dev",
		"a.firefox.json.gz":     "open it in https://profiler.firefox.com",
		"a.nettrace":            "open it in PerfView or Visual Studio, or run `tracefix top a.nettrace`",
		"a.nettrace.gz":         "unpack it and open it in PerfView or Visual Studio, or run `tracefix top a.nettrace.gz`",
		"my a.nettrace.zst":     "unpack it and open it in PerfView or Visual Studio, or run `tracefix top " + text.ShellWord("my a.nettrace.zst") + "`",
		"a.pb.gz":               "run `go tool pprof -http : a.pb.gz`",
		"a.pb.zst":              "unpack it and run `go tool pprof -http : a.pb`",
		"a.html":                "open it in a browser",
		"a.svg.gz":              "unpack it and open it in a browser",
		"a.folded.gz":           "",
	} {
		base := Lookup("convert").Outputs
		format, err := base.Resolve("", name, "")
		assert.NoError(t, err)
		assert.Equal(t, want, opens(name, format, true), name)
	}
}
