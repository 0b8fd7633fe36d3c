// Package text holds what is done to text that comes from elsewhere (traces, names of files
// and archive members, errors that quote them): it is matched with the wildcards that users
// type, filtered on its way to a terminal, a page or a log, and escaped for JSON. [SortRows] orders
// the rows of a report.
//
// JSON is written by hand for rows of which there are millions. Documents that are small or
// bounded are marshaled, by the one library that is in the program anyway; see BenchmarkDocument.
package text
