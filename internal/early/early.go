// Package early does what pays only before the rest of the program is initialised, which takes
// several times as long as Go itself needs to start: the packages of clients, formats and the
// grammar have tables, and their inits touch memory for the first time. It imports os and below
// only, so that its init comes before theirs; cmd/tracefix imports it for that.
package early

import "runtime"

// Help is what `tracefix --help` prints where it does not know how wide a terminal is. The grammar makes it:
// `go test ./cmd/tracefix -run TestEarlyHelp -update` writes it anew.
const Help = help

func init() {
	runtime.MemProfileRate = 0 // nobody asks for it, and each of its samples is a walk through a stack
}
