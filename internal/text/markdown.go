package text

import "strings"

// What makes a name something else in the Markdown of GitHub: an end of a cell, a link or picture,
// an element, an entity, emphasis, code, or someone who is told of it: /@name mentions name, and a
// comment of HTML behind the @ is all that keeps it from that. A backslash comes first: one before
// a | would escape our own.
var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, "~", `\~`, "@", "@<!-- -->")

// Markdown makes s plain text of one line in Markdown, also in a cell of a table.
func Markdown(s string) string { return markdown.Replace(Line(s)) }
