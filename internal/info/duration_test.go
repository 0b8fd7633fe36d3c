package info

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// No time has an exponent, however short it is.
func TestDuration(t *testing.T) {
	for want, ms := range map[string]float64{
		"0 ms": 0, "3 ns": 3e-6, "-70 ns": -7e-5, "0.001 ms": 1e-3, "0.0705 ms": 0.0705, "12 ms": 12.3, "1.50 s": 1500, "24h0m0s": 24 * 3.6e6,
	} {
		assert.Equal(t, want, duration(ms))
	}
}
