package httpreport

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/httpphases"
)

// The phases of HAR follow each other and add up to the time of the entry; connect includes ssl, as
// HAR has it.
func TestHARTimings(t *testing.T) {
	type phase = httpphases.Phase
	for name, c := range map[string]struct {
		phases []phase
		partly bool
		want   timings
	}{
		"never sent": {nil, false, timings{blocked: 100, dns: -1, connect: -1, ssl: -1}},
		"pooled": {[]phase{
			{Name: httpphases.RequestHeaders, Start: 110, Duration: 5}, {Name: httpphases.Wait, Start: 115, Duration: 40},
			{Name: httpphases.ResponseHeaders, Start: 155, Duration: 1}, {Name: httpphases.ResponseContent, Start: 160, Duration: 40},
		}, false, timings{blocked: 10, dns: -1, connect: -1, ssl: -1, send: 5, wait: 40, receive: 45}},
		"new": {[]phase{
			{Name: httpphases.DNS, Start: 102, Duration: 3}, {Name: httpphases.Connect, Start: 105, Duration: 10}, {Name: httpphases.TLS, Start: 115, Duration: 20},
			{Name: httpphases.RequestHeaders, Start: 140, Duration: 2}, {Name: httpphases.RequestContent, Start: 142, Duration: 8},
			{Name: httpphases.Wait, Start: 150, Duration: 30}, {Name: httpphases.ResponseContent, Start: 180, Duration: 20},
		}, false, timings{blocked: 7, dns: 3, connect: 30, ssl: 20, send: 10, wait: 30, receive: 20}},
		"tries out of order": {[]phase{
			{Name: httpphases.Connect, Start: 120, Duration: 10}, {Name: httpphases.Connect, Start: 105, Duration: 10}, {Name: httpphases.RequestHeaders, Start: 140, Duration: 60},
		}, false, timings{blocked: 15, dns: -1, connect: 25, ssl: -1, send: 60}},
		"a look-up inside the connect counts once": {[]phase{
			{Name: httpphases.Connect, Start: 100, Duration: 20}, {Name: httpphases.DNS, Start: 100, Duration: 15}, {Name: httpphases.RequestHeaders, Start: 120, Duration: 80},
		}, false, timings{dns: 15, connect: 5, ssl: -1, send: 80}},
		"a second exchange on a connection of its own": {[]phase{
			{Name: httpphases.DNS, Start: 100, Duration: 2}, {Name: httpphases.Connect, Start: 102, Duration: 5}, {Name: httpphases.RequestHeaders, Start: 110, Duration: 1},
			{Name: httpphases.Wait, Start: 111, Duration: 29}, {Name: httpphases.DNS, Start: 140, Duration: 1}, {Name: httpphases.Connect, Start: 141, Duration: 4},
			{Name: httpphases.RequestHeaders, Start: 150, Duration: 1}, {Name: httpphases.Wait, Start: 151, Duration: 40}, {Name: httpphases.ResponseHeaders, Start: 191, Duration: 9},
		}, false, timings{blocked: 38, dns: 3, connect: 9, ssl: -1, send: 1, wait: 40, receive: 9}},
		"a connection that went on beside": {[]phase{
			{Name: httpphases.Connect, Start: 90, Duration: 200}, {Name: httpphases.RequestHeaders, Start: 150, Duration: 50},
		}, false, timings{dns: -1, connect: 50, ssl: -1, send: 50}},
		"partly": {[]phase{
			{Name: httpphases.Connect, Start: 105, Duration: 10}, {Name: httpphases.TLS, Start: 115, Duration: 20}, {Name: httpphases.Wait, Start: 150, Open: true},
			{Name: httpphases.ResponseContent, Start: 190, Duration: 10},
		}, true, timings{blocked: -1, dns: -1, connect: 30, ssl: 20, wait: 60, receive: 10, rest: 60}},
	} {
		h := &harHop{start: 100, end: 200, phases: c.phases, partly: c.partly}
		got := harTimings(h)
		assert.Equal(t, c.want, got, name)
		var sum int64
		for _, v := range []int64{got.blocked, got.dns, got.connect, got.send, got.wait, got.receive} {
			sum += max(v, 0)
		}
		assert.Equal(t, h.end-h.start, sum, name)
	}
}
