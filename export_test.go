package tracefix

import (
	"fmt"
	"io"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/profile"
)

// A stranger's output is a function and a row; see TestStrangersRows. The row is there before
// other packages look at the table.
func init() {
	formats = append(formats, Format{
		Name: "stranger", Extensions: []string{".stranger"}, Help: "how many samples there are", Tracks: true,
		write: func(w io.Writer, p *profile.Profile, _ export.Options) error {
			n := 0
			for _, t := range p.Threads {
				n += t.Samples.Len()
			}
			_, err := fmt.Fprintln(w, n)
			return err
		},
	})
}

// AsFormatError is formatError.
var AsFormatError = formatError

// ExplainAtOnce sets how many requests Explain keeps, and returns what sets it back.
func ExplainAtOnce(n int) func() {
	was := explainedAtOnce
	explainedAtOnce = n
	return func() { explainedAtOnce = was }
}
