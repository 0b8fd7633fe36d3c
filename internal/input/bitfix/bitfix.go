// Package bitfix finds the one flipped bit that broke compressed data. The libraries that unpack tell only
// that a checksum does not agree, or where nothing can be unpacked any more; one bit is enough to make all
// that follows wrong, since it refers to what was unpacked before. Here the codes are followed, without
// unpacking, to see which bits can have been another way, and the checksum is asked about each of these.
package bitfix

// A verdict is what a test says of a bit.
type verdict uint8

const (
	no   verdict = iota
	yes          // it is the one
	stop         // enough was tried
)

// Limits on what is searched.
const (
	MaxPacked   = 16 << 20  // compressed bytes
	MaxUnpacked = 128 << 20 // what they unpack to

	maxPlaces = 8 << 20   // tokens of deflate data
	maxEffort = 4 << 30   // bytes of what is unpacked for candidates: half a minute
	perBit    = 1 << 10   // of these for each bit that is looked at, at least
	perToken  = 2         // and for each token that is read for one
	perByte   = 16        // and where data die no more in all than for the bits within reach, and for each byte so many
	reach     = 1 << 18   // bits before a place where nothing can be unpacked, among which the flipped one is looked for
	around    = 160 << 10 // bytes of what is unpacked around a place where it is wrong
)

// search tests bits from one down to another, of so many that there are.
func search(from, to, bits int64, test func(bit int64) verdict) (int64, verdict) {
	for c := min(from, bits-1); c >= max(0, to); c-- {
		if v := test(c); v != no {
			return c, v
		}
	}
	return 0, no
}
