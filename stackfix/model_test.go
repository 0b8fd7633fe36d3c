package stackfix

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What bounds the worth of a change is that of some change with as many frames that came and went, or
// more.
func TestRetentionMost(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var pairs [9][9]float64
	for a := range pairs {
		for b := range pairs[a] {
			pairs[a][b] = float64(rnd.IntN(1000))
		}
	}
	var r retention
	r.begin(&pairs)
	r.finish()
	for came := range pairs {
		for went := range pairs {
			before, after := math.Inf(-1), math.Inf(-1)
			for a := came; a < len(pairs); a++ {
				for b := went; b < len(pairs); b++ {
					before, after = max(before, r.bits[b][a]), max(after, r.bits[a][b])
				}
			}
			assert.Equal(t, [2]float64{before, after}, [2]float64{r.most[0][came][went], r.most[1][came][went]}, "%d came, %d went", came, went)
		}
	}
}
