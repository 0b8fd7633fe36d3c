package chromium

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAppendReplaced(t *testing.T) {
	for _, c := range []struct{ raw, key, value, want string }{
		{`{"name":"f","cat":"a","ts":1}`, "cat", `"b"`, `{"name":"f","cat":"b","ts":1}`},
		{`{"name": "f", "ts" : 1.5, "cat": "a"}`, "ts", `2`, `{"name": "f", "ts" : 2, "cat": "a"}`},
		{`{"ts":"1","ph":"B"}`, "ts", `"2"`, `{"ts":"2","ph":"B"}`},
		{`{"name":"cat","cat":"a"}`, "cat", `"b"`, `{"name":"cat","cat":"b"}`},
		{`{"name":"x\"cat","cat":"a"}`, "cat", `"b"`, `{"name":"x\"cat","cat":"b"}`},
		{`{"name":"cat"}`, "cat", `"b"`, `{"name":"cat","cat":"b"}`},
		{`{"args":{"cat":"inner"},"cat":"a"}`, "cat", `"b"`, `{"args":{"cat":"inner"},"cat":"b"}`},
		{`{"c\u0061t":"a"}`, "cat", `"b"`, `{"c\u0061t":"b"}`},
		{`{"cat":"a","cat":"c"}`, "cat", `"b"`, `{"cat":"b","cat":"b"}`},
		{`{"cat":null, "ts":1}`, "cat", `"b"`, `{"cat":"b", "ts":1}`},
		{`{"cat":[1,2],"ts":1}`, "cat", `"b"`, `{"cat":"b","ts":1}`},
		{`{"ph":"B"}`, "cat", `"b"`, `{"ph":"B","cat":"b"}`},
		{`{"tts":5,"ph":"B"}`, "ts", `2`, `{"tts":5,"ph":"B","ts":2}`},
		{`{"tts":5,"ts":1}`, "ts", `2`, `{"tts":5,"ts":2}`},
		{`{"ts2":5,"ts":1}`, "ts", `2`, `{"ts2":5,"ts":2}`},
	} {
		assert.Equal(t, c.want, string(AppendReplaced(nil, []byte(c.raw), c.key, []byte(c.value))), c.raw)
	}
}
