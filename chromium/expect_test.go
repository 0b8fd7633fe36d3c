package chromium

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTake gives an event a value of each kind: '"' string, '0' literal, '{' anything else.
func TestTake(t *testing.T) {
	for _, test := range []struct {
		key  key
		kind byte
		text string // with a byte on both sides
		want *Event // nil: refused
	}{
		{keyPID, '0', ` 12 `, &Event{PID: []byte("12")}},
		{keyTID, '"', `"12"`, &Event{TID: []byte(`"12"`)}},
		{keyCat, '"', `"ab"`, &Event{Cat: []byte("ab")}},
		{keyCat, '0', ` 12 `, nil},
		{keyID, '0', ` 1x `, nil},
		{keySF, '0', ` 12 `, &Event{SF: []byte("12")}},
		{keySF, '0', ` 01 `, nil},
		{keySF, '0', ` -1 `, nil},
		{keyArgs, '{', ` {} `, &Event{Args: []byte("{}")}},
		{keyOther, '0', ` 1x `, nil},
		{keyOther, '{', ` {} `, &Event{}},
	} {
		var r Reader
		var ev Event
		ok := r.take(&ev, &step{key: test.key, kind: test.kind}, []byte(test.text), 1, len(test.text)-1)
		assert.Equal(t, test.want != nil, ok, test)
		if ok {
			assert.Equal(t, *test.want, ev, test)
		}
	}
}
