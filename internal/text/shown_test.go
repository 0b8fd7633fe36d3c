package text

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestShownWriter holds that text is filtered the same however it is cut into writes.
func TestShownWriter(t *testing.T) {
	in := "a\x1b[31mé\u202e\tb\n世\x9b界\xffz"
	for size := 1; size < len(in); size++ {
		var out strings.Builder
		w := ShownWriter(&out)
		for i := 0; i < len(in); i += size {
			n, err := io.WriteString(w, in[i:min(i+size, len(in))])
			require.NoError(t, err)
			require.Equal(t, min(size, len(in)-i), n)
		}
		assert.Equal(t, Lines(in), out.String(), "writes of %d", size)
	}
}

func TestHiddenCharactersAreMarked(t *testing.T) {
	for _, c := range []struct{ name, in, line, text string }{
		{"plain", "Main!A.B(int)", "Main!A.B(int)", "Main!A.B(int)"},
		{"letters of the world", "größe 名前 ἀλήθεια 🚀 é", "größe 名前 ἀλήθεια 🚀 é", "größe 名前 ἀλήθεια 🚀 é"},
		{"names of obfuscators", "\ue001\uf8ff", "\ue001\uf8ff", "\ue001\uf8ff"},
		{"escape sequences", "a\x1b]0;x\x07b\x1b[2J", "a�]0;x�b�[2J", "a�]0;x�b�[2J"},
		{"C1 controls", "a\u009b2Jb\x7f", "a�2Jb�", "a�2Jb�"},
		{"bidi", "a\u202eb\u2066c\u200fd\u061c", "a�b�c�d�", "a�b�c�d�"},
		{"invisible", "a\u200bb\ufeffc\u00add\u2060e\u3164\U000e0041\ufe0f", "a�b�c�d�e���", "a�b�c�d�e���"},
		{"lines", "a\r\nb\tc\vd\u2028e", "a  b c�d�e", "a \nb\tc�d�e"},
		{"no UTF-8", "a\xff\xfeb\x9b", "a��b�", "a��b�"},
		{"no characters", "a\uffff\U0001fffe", "a��", "a��"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.line, Line(c.in))
			assert.Equal(t, c.text, Lines(c.in))
			assert.Equal(t, "\x1b[1m"+c.line, string(AppendedLine([]byte("\x1b[1m"+c.in), 4)))
			assert.Equal(t, utf8.RuneCountInString(c.in), utf8.RuneCountInString(Line(c.in)), "columns stay aligned")
		})
	}
}

func BenchmarkLine(b *testing.B) {
	const s = "System.Private.CoreLib!System.Threading.ThreadPoolWorkQueue.Dispatch()"
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for range b.N {
		Line(s)
	}
}
