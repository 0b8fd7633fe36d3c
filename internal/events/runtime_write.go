package events

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/export"
	"github.com/tracefix/tracefix/internal/text"
)

// Summary is what there is to say in one line.
func (r *Report) Summary() string {
	if r.Rows.Len() == 0 {
		return r.Missing
	}
	return r.Done
}

// each calls f for the rows, with the totals at the end, which are there even of nothing.
func (r *Report) each(f func(row any) error) error {
	if r.Rows.Len() == 0 {
		return f(r.stats)
	}
	return r.Rows.each(f)
}

func (r *Report) ndjson(w io.Writer) error {
	b := bufio.NewWriter(w)
	err := r.each(func(row any) error { return text.WriteDocument(b, row, "") })
	return cmp.Or(err, b.Flush())
}

// json writes one document: the verdicts, and the rows as ndjson has them.
func (r *Report) json(w io.Writer) error {
	type process struct {
		Process string   `json:"process,omitempty"`
		Verdict []string `json:"verdict"`
	}
	head := struct {
		Title     string    `json:"title"`
		Processes []process `json:"processes"`
	}{r.Title, []process{}}
	for _, s := range r.Sections {
		head.Processes = append(head.Processes, process{s.Process, s.Verdict})
	}
	var b bytes.Buffer
	if err := text.WriteDocument(&b, head, " "); err != nil {
		return err
	}
	b.Truncate(b.Len() - len("\n}\n"))
	b.WriteString(",\n \"rows\": [")
	before := "\n  "
	err := r.each(func(row any) error {
		b.WriteString(before)
		before = ",\n  "
		err := text.WritePart(&b, row, "  ", " ")
		b.Truncate(b.Len() - len("\n"))
		if b.Len() > jsonAtOnce {
			err = cmp.Or(err, flushTo(w, &b))
		}
		return err
	})
	b.WriteString("\n ]\n}\n")
	return cmp.Or(err, flushTo(w, &b))
}

// jsonAtOnce is how many bytes of a document are written at once: rows are not all held.
const jsonAtOnce = 64 << 10

func flushTo(w io.Writer, b *bytes.Buffer) error {
	_, err := w.Write(b.Bytes())
	b.Reset()
	return err
}

// csv writes a line for each row of r.CSV, a column for each field; the elements of a list
// have semicolons between them.
func (r *Report) csv(w io.Writer) error {
	c := csv.NewWriter(w)
	t := reflect.TypeOf(r.row)
	var head []string
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "k" {
			head = append(head, name)
		}
	}
	if err := c.Write(head); err != nil {
		return err
	}
	err := r.CSV.each(func(row any) error {
		v := reflect.ValueOf(row)
		var cells []string
		for i := range v.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "k" {
				cells = append(cells, cell(v.Field(i)))
			}
		}
		return c.Write(cells)
	})
	c.Flush()
	return cmp.Or(err, c.Error())
}

func cell(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return cell(v.Elem())
	case reflect.Slice, reflect.Array:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, cell(v.Index(i)))
		}
		return strings.Join(parts, ";")
	case reflect.Map:
		var parts []string
		for _, k := range v.MapKeys() {
			parts = append(parts, k.String()+"="+cell(v.MapIndex(k)))
		}
		slices.Sort(parts)
		return strings.Join(parts, ";")
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// text writes the verdicts first, then the tables.
func (r *Report) text(w io.Writer, width int) error {
	var b strings.Builder
	for i, s := range r.Sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		if s.Process != "" {
			b.WriteString(text.Line(s.Process) + "\n")
		}
		for _, v := range s.Verdict {
			b.WriteString(text.Wrapped(text.Line(v), cmp.Or(width, 110), 2) + "\n")
		}
		for i := range s.Tables {
			b.WriteByte('\n')
			s.Tables[i].text(&b, width)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) text(b *strings.Builder, width int) {
	if t.Title != "" {
		b.WriteString(t.Title + "\n")
	}
	wide := make([]int, len(t.Head))
	for i, h := range t.Head {
		wide[i] = utf8.RuneCountInString(h)
	}
	for _, row := range t.Rows {
		for i, c := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(text.Line(c)))
		}
	}
	var names, spare []int
	for i := t.Left; i < len(wide); i++ {
		names = append(names, i)
	}
	for _, h := range t.Spare {
		spare = append(spare, slices.Index(t.Head, h))
	}
	text.FitColumns(wide, width, 2, names, spare)
	t.line(b, t.Head, wide, strings.ToUpper)
	for _, row := range t.Rows {
		t.line(b, row, wide, text.Line)
	}
	if t.More > 0 {
		fmt.Fprintf(b, "  %s more; --limit 0 shows all\n", thousands(t.More))
	}
	if left := text.LeftOut(t.Head, wide); left != "" {
		b.WriteString("  " + left + "\n")
	}
}

func (t *Table) line(b *strings.Builder, row []string, wide []int, form func(string) string) {
	var l strings.Builder
	for i, c := range row {
		if wide[i] < 0 {
			continue
		}
		c = form(c)
		if n := utf8.RuneCountInString(c); n > wide[i] {
			c = export.Shorten(c, wide[i])
		}
		pad := strings.Repeat(" ", max(0, wide[i]-utf8.RuneCountInString(c)))
		l.WriteString("  ")
		if i < t.Left {
			l.WriteString(pad + c)
		} else {
			l.WriteString(c + pad)
		}
	}
	b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
}
