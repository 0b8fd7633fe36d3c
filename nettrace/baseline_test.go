package nettrace

import (
	"bufio"
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBaselines holds the number of events of each type against the lists that
// the reference library's own tests have for older versions. Those leave out some
// types, so that sums cannot be compared.
func TestBaselines(t *testing.T) {
	line := regexp.MustCompile(`^([^/]+)/(.*), (\d+), <Event`)
	for _, name := range []string{
		"2.0-linux.netperf", "2.0-linux-objver2.netperf", "2.1-linux-x64-tracelogging.netperf", "2.1-win-x86-objver3.netperf",
		"3.0-win-x64-objver4.nettrace", "5.0-win-x64-arraytypes.nettrace", "6.0-win-x64-executioncheckpoints.nettrace",
	} {
		t.Run(name, func(t *testing.T) {
			const dir = "nettrace/microsoft-perfview/eventpipe-dotnetcore"
			baseline := corpusFile(t, dir+name+".baseline.txt")
			gz := ".gz"
			if strings.Contains(name, "tracelogging") || strings.Contains(name, "arraytypes") || strings.Contains(name, "checkpoints") {
				gz = ""
			}
			if testing.Short() && gz != "" {
				t.Skip("large")
			}
			r, err := NewReader(bytes.NewReader(corpusFile(t, dir+name+gz)), nil)
			require.NoError(t, err)
			got := map[string]int{}
			for ev, err := range r.All() {
				require.NoError(t, err)
				got[ev.Metadata.Provider+"/"+ev.EventName()]++
			}
			lines := 0
			for s := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(baseline, []byte("\xef\xbb\xbf")))); s.Scan(); {
				m := line.FindStringSubmatch(s.Text())
				if m == nil {
					continue
				}
				lines++
				want, _ := strconv.Atoi(m[3])
				switch {
				case m[1] == ProviderRuntime && m[2] == "GC":
					// The reference knows only the task of these.
					m[2] = "IncreaseMemoryPressure"
					want -= got[ProviderRuntime+"/DecreaseMemoryPressure"]
				case strings.HasPrefix(m[1], "Provider("):
					// v1 has no names of providers, and the reference takes no
					// "Start" off names there.
					m[1] = strings.TrimSuffix(strings.TrimPrefix(m[1], "Provider("), ")")
					m[2] = strings.Replace(strings.Replace(m[2], "Start/", "/", 1), "Stop/", "/", 1)
				}
				assert.Equal(t, want, got[m[1]+"/"+m[2]], "%s/%s", m[1], m[2])
			}
			assert.NotZero(t, lines)
		})
	}
}
