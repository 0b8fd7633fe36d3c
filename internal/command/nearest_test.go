package command

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	names := []string{"Shop!Shop.Cart.Add(int32)", "Shop!Shop.Cart.Adding()", "Shop!Shop.Order.Place()", "x!Y.Z()"}
	for pattern, want := range map[string]string{
		"Cart.Add":   "; near that name are Shop!Shop.Cart.Add(int32), Shop!Shop.Cart.Adding()",
		"*Plcae":     "; near that name are Shop!Shop.Order.Place()",
		"cart.ading": "; near that name are Shop!Shop.Cart.Adding(), Shop!Shop.Cart.Add(int32)",
		"Unheard":    "",
		"*":          "",
	} {
		assert.Equal(t, want, nearest(pattern, names), pattern)
	}
}

// What has no name is not offered by it.
func TestDistinct(t *testing.T) {
	assert.Equal(t, []string{"Host", "Request"}, distinct(func(name func(string)) {
		for _, n := range []string{"Request", "", "Host", "Request"} {
			name(n)
		}
	}))
}
