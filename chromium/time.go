package chromium

import "cmp"

// A Time is a moment or a length as an event gives it: microseconds as decimal
// text, read exactly.
type Time struct {
	Text  []byte // as written, with quotes if it was a string; nil if the key is missing
	NS    int64  // whole nanoseconds, rounded down
	Sub   uint32 // the rest in attoseconds, 0 to 999,999,999; digits beyond are dropped
	Valid bool   // Text is a number in the range of NS
}

// Compare orders two valid times.
func (t Time) Compare(u Time) int {
	if t.NS != u.NS {
		return cmp.Compare(t.NS, u.NS)
	}
	return cmp.Compare(t.Sub, u.Sub)
}

// ParseTime reads text as microseconds. It takes integers, decimals, exponent
// forms, and each of them as a JSON string.
func ParseTime(text []byte) Time {
	t := Time{Text: text}
	b := text
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		b = b[1 : len(b)-1]
	}
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	// The common case: at most 15 digits, a point, at most 12 digits.
	var whole, frac uint64
	i := 0
	for i < len(b) && b[i]-'0' < 10 {
		whole = whole*10 + uint64(b[i]-'0')
		i++
	}
	if i > 15 || i == 0 {
		return t.slow(b, neg)
	}
	if i < len(b) {
		if b[i] != '.' {
			return t.slow(b, neg)
		}
		i++
		j := i
		for i < len(b) && b[i]-'0' < 10 {
			frac = frac*10 + uint64(b[i]-'0')
			i++
		}
		if i < len(b) || i-j > 12 {
			return t.slow(b, neg)
		}
		frac *= pow10[12-(i-j)]
	}
	return t.set(whole, frac, neg)
}

var pow10 = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// set takes whole microseconds and attoseconds within one.
func (t Time) set(whole, frac uint64, neg bool) Time {
	ns := int64(whole*1000 + frac/1e9)
	sub := uint32(frac % 1e9)
	if neg {
		ns = -ns
		if sub != 0 {
			ns--
			sub = 1e9 - sub
		}
	}
	t.NS, t.Sub, t.Valid = ns, sub, true
	return t
}

// slow handles exponents and many digits, in decimal as well.
func (t Time) slow(b []byte, neg bool) Time {
	var digits [48]byte // significant ones
	n := 0              // digits held
	point := 0          // digits before the decimal point
	seenPoint, any := false, false
	i := 0
	for ; i < len(b); i++ {
		c := b[i]
		if c == '.' && !seenPoint {
			seenPoint = true
			continue
		}
		if c-'0' >= 10 {
			break
		}
		any = true
		if n == 0 && c == '0' {
			if seenPoint {
				point--
			}
			continue
		}
		if n < len(digits) {
			digits[n] = c - '0'
			n++
		}
		if !seenPoint {
			point++
		}
	}
	if !any {
		return t
	}
	if i < len(b) {
		if b[i]|0x20 != 'e' {
			return t
		}
		i++
		eneg := false
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			eneg = b[i] == '-'
			i++
		}
		e, j := 0, i
		for ; i < len(b) && b[i]-'0' < 10; i++ {
			e = min(e*10+int(b[i]-'0'), 1<<20)
		}
		if i == j || i < len(b) {
			return t
		}
		if eneg {
			e = -e
		}
		point += e
	}
	if n > 0 && point > 16 {
		return t
	}
	var whole, frac uint64
	for k := 0; k < point; k++ {
		whole *= 10
		if k < n {
			whole += uint64(digits[k])
		}
	}
	for k := point; k < point+12; k++ {
		frac *= 10
		if k >= 0 && k < n {
			frac += uint64(digits[k])
		}
	}
	if whole > (1<<63-1)/1000-1 {
		return t
	}
	return t.set(whole, frac, neg)
}
