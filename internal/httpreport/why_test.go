package httpreport

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// CPU that the trace does not tell is absent, not 0.
func TestTimeOfUnknownCPU(t *testing.T) {
	const rest = `"gc_ms":0,"pool_ms":0,"other_side_ms":0,"await_ms":`
	for name, c := range map[string]struct {
		why  httpphases.Explanation
		want string
	}{
		"nothing told": {httpphases.Explanation{Time: httpphases.TimeByCause{Unknown: 5e6}}, `{"blocked_ms":{},` + rest + `0,"unknown_ms":5}`},
		"none":         {httpphases.Explanation{Time: httpphases.TimeByCause{Await: 5e6}}, `{"cpu_ms":0,"blocked_ms":{},` + rest + `5,"unknown_ms":0,"cpu_total_ms":0}`},
		"some": {
			httpphases.Explanation{Time: httpphases.TimeByCause{CPU: 1e6, Unknown: 4e6}, CPUTotal: 2e6},
			`{"cpu_ms":1,"blocked_ms":{},` + rest + `0,"unknown_ms":4,"cpu_total_ms":2}`,
		},
	} {
		assert.JSONEq(t, c.want, string(appendTime(nil, &c.why)), name)
	}
}

func TestCompiledForARequest(t *testing.T) {
	why := &httpphases.Explanation{Time: httpphases.TimeByCause{CPU: 5e6}, CPUTotal: 5e6}
	assert.NotContains(t, string(AppendExplanation(nil, why)), "compile")
	why.Compiled = 12
	assert.Contains(t, string(AppendExplanation(nil, why)), `,"compiled":12`)
	assert.NotContains(t, string(AppendExplanation(nil, why)), "compile_ms", "nothing tells when they began")
	why.CompileTotal = 3e6
	assert.Contains(t, string(AppendExplanation(nil, why)), `"compile_ms":3,"compiled":12`)
}
