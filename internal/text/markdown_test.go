package text

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMarkdownIsPlainText(t *testing.T) {
	for in, want := range map[string]string{
		`App!List<int>.M(a|b)`:      `App!List&lt;int&gt;.M(a\|b)`,
		`C:\x\|y`:                   `C:\\x\\\|y`, // else the cell ends behind the second backslash
		`/[log in](http://x)?a&lt;`: `/\[log in\](http://x)?a&amp;lt;`,
		"~~a~~ *b* _c_ `d`":         "\\~\\~a\\~\\~ \\*b\\* \\_c\\_ \\`d\\`",
		"GET /@types/node":          "GET /@<!-- -->types/node", // else the team of that name is told of it
	} {
		assert.Equal(t, want, Markdown(in))
	}
	assert.NotContains(t, Markdown("a\n# b"), "\n")
}
