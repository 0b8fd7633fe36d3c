package load

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/profile"
)

// Whatever the fields of a payload are called, each has a key of its own, and ours keep
// theirs.
func TestDetailsHaveKeysOfTheirOwn(t *testing.T) {
	for _, c := range []struct{ own, fields, want []string }{
		{[]string{"path", "thread"}, []string{"method", "path"}, []string{"path", "thread", "method", "payload.path"}},
		{[]string{"path"}, []string{"payload.path", "path"}, []string{"path", "payload.path", "payload.payload.path"}},
		{nil, []string{"a", "a", "a"}, []string{"a", "payload.a", "payload.payload.a"}},
		{nil, []string{"tracefix", ""}, []string{"payload.tracefix", ""}},
		{nil, []string{"path", "thread"}, []string{"path", "thread"}},
	} {
		var args []profile.Arg
		for _, k := range c.own {
			args = append(args, profile.Arg{Key: k})
		}
		for i, k := range c.fields {
			args = appendDetail(args, k, i)
		}
		var got []string
		for i, a := range args {
			got = append(got, a.Key)
			if i >= len(c.own) {
				assert.Equal(t, i-len(c.own), a.Value)
			}
		}
		assert.Equal(t, c.want, got)
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), len(got))
	}
}
