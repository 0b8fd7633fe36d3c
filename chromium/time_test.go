package chromium_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/chromium"
)

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		text string
		ns   int64
		sub  uint32
		ok   bool
	}{
		{"0", 0, 0, true}, {"-0", 0, 0, true}, {"1", 1000, 0, true}, {"5699.888", 5699888, 0, true},
		{"580.1020000000001", 580102, 0, true},
		{"1712195495519689.123", 1712195495519689123, 0, true},
		{"7823421.551037414", 7823421551, 37_414_000, true},
		{"207414.49999809265", 207414499, 998_092_650, true},
		{"1E-05", 0, 10_000_000, true}, {"1.5e+16", 0, 0, false}, {"1.2E+15", 1_200_000_000_000_000_000, 0, true}, {"1e3", 1_000_000, 0, true},
		{"1234567.891e-3", 1234567, 891_000_000, true},
		{`"445191683049.142"`, 445191683049142, 0, true},
		{"-12", -12000, 0, true}, {"-0.0005", -1, 500_000_000, true}, {"-1.0015", -1002, 500_000_000, true},
		{".5", 500, 0, true}, {"5.", 5000, 0, true}, {"+1", 1000, 0, true}, {"007", 7000, 0, true},
		{"1.1234567890123456789012", 1123, 456_789_012, true},
		{"0.000000000000000001", 0, 0, true},
		{"9223372036854775", 0, 0, false}, {"9223372036854773.999999", 9223372036854773999, 999_000_000, true},
		{"99999999999999999999", 0, 0, false}, {"1e400", 0, 0, false}, {"0e400", 0, 0, true}, {"1e-400", 0, 0, true},
		{"", 0, 0, false}, {"null", 0, 0, false}, {"NaN", 0, 0, false}, {"1e", 0, 0, false}, {"1.2.3", 0, 0, false}, {`"x"`, 0, 0, false}, {"-", 0, 0, false},
	} {
		got := chromium.ParseTime([]byte(c.text))
		assert.Equal(t, c.ok, got.Valid, c.text)
		if c.ok {
			assert.Equal(t, c.ns, got.NS, c.text)
			assert.Equal(t, c.sub, got.Sub, c.text)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"0", "1.5e+16", "-12.25", "1E-05", `"4.2"`, "1712195495519689.123"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := chromium.ParseTime([]byte(s))
		if !got.Valid || len(s) > 40 {
			return
		}
		if s[0] == '"' {
			s = s[1 : len(s)-1]
		}
		want, ok := new(big.Rat).SetString(s)
		if !ok {
			return
		}
		// Within one attosecond, and never above.
		have := new(big.Rat).SetFrac(new(big.Int).Add(new(big.Int).Mul(big.NewInt(got.NS), big.NewInt(1e9)), big.NewInt(int64(got.Sub))), big.NewInt(1e12))
		diff := new(big.Rat).Sub(want, have)
		diff.Abs(diff)
		if diff.Cmp(big.NewRat(1, 1e12)) > 0 {
			t.Fatalf("%s: read as %s", s, have.FloatString(12))
		}
	})
}
