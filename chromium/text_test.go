package chromium

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Texts are unquoted as encoding/json does it.
func TestUnquote(t *testing.T) {
	for _, raw := range []string{
		``, `plain`, `a\"b\\c\/d`, `\b\f\n\r\t`, `\u0041\u00e9\u20ac`, `\ud83d\ude00 x`, `\ud83d`, `\ude00\ud83d`, `\ud83dx`, `\ud83d\n`, `é€😀`,
	} {
		var want string
		require.NoError(t, json.Unmarshal([]byte(`"`+raw+`"`), &want), raw)
		assert.Equal(t, want, Unquote([]byte(raw)), raw)
	}
}

// What is put right is JSON, and means what was written; what was right stays as it was.
func TestFixString(t *testing.T) {
	for _, c := range []struct{ raw, fixed, text string }{
		{`plain \n \u20ac \\ \"`, `plain \n \u20ac \\ \"`, "plain \n € \\ \""},
		{`C:\src\new\u`, `C:\\src\new\\u`, "C:\\src\new\\u"},
		{`say "hi" \"there\"`, `say \"hi\" \"there\"`, `say "hi" "there"`},
		{"a\nb\tc\rd\x01e\\n", `a\nb\tc\rd\u0001e\n`, "a\nb\tc\rd\x01e\n"},
		{"\xff\\t\xe2\x82", `�\t��`, "\ufffd\t\ufffd\ufffd"},
	} {
		fixed := string(fixString(nil, []byte(c.raw)))
		assert.Equal(t, c.fixed, fixed, "%q", c.raw)
		var text string
		require.NoError(t, json.Unmarshal([]byte(`"`+fixed+`"`), &text), "%q", c.raw)
		assert.Equal(t, c.text, text, "%q", c.raw)
	}
}
