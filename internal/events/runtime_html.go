package events

import (
	_ "embed"
	"html/template"
	"io"
	"sync"

	"github.com/tracefix/tracefix/internal/text"
)

//go:embed runtime.html
var pageText string

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"plain": text.Line,
		"class": func(column, left int) string {
			if column < left {
				return "num"
			}
			return ""
		},
	}).Parse(pageText))
})

// html writes one page that needs nothing else: verdicts, plots, tables.
func (r *Report) html(w io.Writer) error { return page().Execute(w, r) }
