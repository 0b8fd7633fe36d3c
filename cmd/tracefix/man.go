package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// ManCmd is `tracefix man`: the man page, made of the grammar.
type ManCmd struct{}

// Run prints the page in roff.
func (*ManCmd) Run(k *kong.Kong, std streams) error {
	_, err := io.WriteString(std.out, manPage(k))
	return err
}

// manPage has the commands in the order and the groups of the help. Its date is that of the
// commit: the same release has the same page, whenever it is built.
func manPage(k *kong.Kong) string {
	var b strings.Builder
	day, _, _ := strings.Cut(date, "T")
	fmt.Fprintf(&b, ".TH TRACEFIX 1 %q %q \"User Commands\"\n", day, strings.TrimSpace("tracefix "+release))
	// As the help begins: a sentence on what it is, advice, and the exit codes.
	what, rest, _ := strings.Cut(k.Model.Help, ". ")
	advice, codes, _ := strings.Cut(rest, "\n\n")
	b.WriteString(".SH NAME\n")
	fill(&b, "tracefix - "+strings.TrimPrefix(oneLine(what), "tracefix "))
	b.WriteString(".SH SYNOPSIS\n.B tracefix\n.I COMMAND\n[\\fIflags\\fR] ...\n.br\n.B tracefix\n.I TRACE\n.SH DESCRIPTION\n")
	fill(&b, oneLine(what)+".")
	fill(&b, oneLine(advice))
	b.WriteString(".SH OPTIONS\n")
	writeManFlags(&b, k.Model.Flags)
	group := ""
	for _, c := range k.Model.Children {
		if c.Hidden {
			continue
		}
		if c.Group != nil && c.Group.Title != group {
			group = c.Group.Title
			fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(roffText(strings.TrimSuffix(group, ":"))))
		}
		writeManCommand(&b, c)
	}
	b.WriteString(".SH EXIT STATUS\n")
	fill(&b, strings.TrimPrefix(oneLine(codes), "Exit codes: "))
	return b.String()
}

// writeManCommand writes a command and all below it.
func writeManCommand(b *strings.Builder, c *kong.Node) {
	usage := strings.Join(commandPath(c), " ")
	shown := c
	if c.DefaultCmd != nil {
		shown = c.DefaultCmd
	}
	for _, p := range shown.Positional {
		usage += " " + p.Summary()
	}
	fmt.Fprintf(b, ".SS %s\n", roffText(usage+" [flags]"))
	fill(b, c.Help)
	writeManFlags(b, ownFlags(c))
	if list := examplesOf(shown); list != nil {
		b.WriteString(".PP\nExamples:\n.PP\n.nf\n")
		for _, line := range list {
			b.WriteString(roffText(line) + "\n")
		}
		b.WriteString(".fi\n")
	}
	for _, below := range c.Children {
		if below != c.DefaultCmd && !below.Hidden {
			writeManCommand(b, below)
		}
	}
}

func writeManFlags(b *strings.Builder, flags []*kong.Flag) {
	for _, f := range flags {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n", roffText(f.String()))
		fill(b, f.Help)
	}
}

// ownFlags are the flags that the help of a command lists, but for --help.
func ownFlags(c *kong.Node) (list []*kong.Flag) {
	if c.DefaultCmd != nil {
		c = c.DefaultCmd
	}
	for _, f := range c.Flags {
		if !f.Hidden && f.Name != "help" {
			list = append(list, f)
		}
	}
	return list
}

// examplesOf are the command lines in the help of a command.
func examplesOf(c *kong.Node) (list []string) {
	if c.DefaultCmd != nil {
		c = c.DefaultCmd
	}
	for line := range strings.Lines(c.Detail) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "tracefix ") {
			list = append(list, line)
		}
	}
	return list
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// roffText is a text that means nothing to roff.
func roffText(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// fill writes a paragraph, each sentence on lines of its own, as roff wants it.
func fill(b *strings.Builder, s string) {
	long := 0
	for _, word := range strings.Fields(s) {
		ends := strings.HasSuffix(word, ".")
		word = roffText(word)
		if long > 0 && long+1+len(word) > 78 {
			b.WriteByte('\n')
			long = 0
		}
		if long > 0 {
			b.WriteByte(' ')
			long++
		}
		b.WriteString(word)
		long += len(word)
		if ends {
			b.WriteByte('\n')
			long = 0
		}
	}
	if long > 0 {
		b.WriteByte('\n')
	}
}
