package tracetest

// InPlace counts the samples of a damaged file that the whole one has too, each by what identifies it and
// within a millisecond of its time: that of events behind lost ones is only known so well. Times are ns in
// ascending order.
func InPlace[Key comparable](want, got map[Key][]int64) (n int) {
	for k, times := range got {
		rest := want[k]
		for _, t := range times {
			for len(rest) > 0 && rest[0] < t-1e6 {
				rest = rest[1:]
			}
			if len(rest) > 0 && rest[0] <= t+1e6 {
				n, rest = n+1, rest[1:]
			}
		}
	}
	return n
}
