package spans

import (
	"fmt"
	"strings"
)

// stack makes frames of a notation: names divided by blanks, a0..a88 for a run of
// numbered ones, F*40 for one that stands 40 times.
func stack(notation string) []string {
	var out []string
	for _, w := range strings.Fields(notation) {
		var name string
		var from, to, n int
		if a, b, ok := strings.Cut(w, ".."); ok {
			name = strings.TrimRight(a, "0123456789")
			_, err := fmt.Sscan(a[len(name):], &from)
			if err == nil {
				_, err = fmt.Sscan(b[len(name):], &to)
			}
			if err != nil {
				panic(w)
			}
			for i := from; i <= to; i++ {
				out = append(out, fmt.Sprint("m!", name, i))
			}
			continue
		}
		if a, b, ok := strings.Cut(w, "*"); ok {
			if _, err := fmt.Sscan(b, &n); err != nil {
				panic(w)
			}
			for range n {
				out = append(out, "m!"+a)
			}
			continue
		}
		if w == "?" {
			w = "?!?"
		} else {
			w = "m!" + w
		}
		out = append(out, w)
	}
	return out
}

const (
	b90  = "Root a0..a88 "
	d120 = b90 + "d0..d29"
)
