package text

import "sort"

// SortRows sorts rows of a report, and keeps the order of equal ones. slices.SortFunc is up to 16 KB of
// program for each kind of row, as large as they are, and the lists are short.
func SortRows[Row any](rows []Row, order func(x, y *Row) int) {
	sort.SliceStable(rows, func(i, j int) bool { return order(&rows[i], &rows[j]) < 0 })
}
