package stackfix

// Rows of frames, or of methods, are told apart by hashes that are polynomials in mul, so that one
// row is cut out of another one without going through it again.

// hashOn is the hash of a row that goes on with x, h being that of the row so far. That of the last
// n of a row is less by that of all before them times powers[n].
func hashOn(h uint64, x uint32) uint64 { return h*mul + uint64(x) + 1 }

// powers are those of mul, as far as rows of a fixed length need them.
var powers = func() (w [maxContext + 1]uint64) {
	w[0] = 1
	for i := range w[1:] {
		w[i+1] = w[i] * mul
	}
	return w
}()
