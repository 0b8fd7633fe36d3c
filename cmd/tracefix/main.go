// Command tracefix post-processes .NET traces offline: it repairs call stacks that
// the recorder cut, reconstructs HTTP requests, converts, and does so over archives.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
	_ "github.com/tracefix/tracefix/internal/early" // its init does what pays only before all others
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// Exit codes; they are part of the contract with scripts.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDamaged     = 3
	exitInterrupted = 130
)

// CLI holds the flags of all commands.
type CLI struct {
	Version versionFlag `help:"Print the version and exit."`
	Quiet   bool        `short:"q" help:"Print no summary line and no progress."`
}

// streams are the standard streams, so that tests can replace them.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	log.SetOutput(io.Discard) // only libraries write there, such as that of HTTP on what a store sends unasked
	keepMemoryLow()
	ctx, end := signals()
	os.Exit(end.watch(func() int { return run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}) }))
}

// usage makes of an error a mistake on the command line that kong cannot see.
func usage(err error) error { return report.UsageError{Err: err} }

// damaged says that the work is done although an input was damaged.
type damaged struct{ error }

func run(ctx context.Context, args []string, std streams) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(std.err, "tracefix: internal error: %v\nPlease report it with the trace, if you can share it, and this text:\n%s\n%s", r, version(), debug.Stack())
			code = exitFailed
		}
	}()

	hugePages := make(chan struct{})
	if size := heapOf(args); oneTrace.Load() && size > 0 { // beside the grammar, which takes as long
		go func() {
			useHugePages(int(size))
			close(hugePages)
		}()
	} else {
		close(hugePages)
	}
	args, piece := planned(ctx, args)
	exited := -1
	var cli CLI
	words := &noted{w: std.out}
	help := io.Writer(words)
	if isTerminal(std.out) { // of which kong asks how wide it is
		help = std.out
	}
	parser, err := grammar(&cli, args, kong.Writers(help, std.err), kong.Bind(std), kong.Exit(func(c int) {
		if exited < 0 {
			exited = c
		}
	}))
	if err != nil {
		fmt.Fprintln(std.err, "tracefix: internal error:", err)
		return exitFailed
	}
	if len(args) == 0 {
		fmt.Fprint(words, usual)
		return words.code(exitOK, std.err)
	}
	args, trace := asked(parser, args)
	if trace != "" {
		<-hugePages
		return exitCode(introduce(ctx, std.out, trace), ctx, std.err)
	}
	kctx, err := parser.Parse(args)
	if exited >= 0 { // --help, --version
		return words.code(exited, std.err)
	}
	if words.err != nil { // of a help
		return words.code(exitOK, std.err)
	}
	if err == nil {
		err = badOutput(kctx)
	}
	if err != nil {
		what, ask := plain(parser, err)
		fmt.Fprintf(std.err, "tracefix: %s\nRun `%s` for what there is.\n", text.Lines(what), ask)
		return exitUsage
	}
	kctx.BindTo(ctx, (*context.Context)(nil))
	kctx.Bind(piece)
	<-hugePages
	if explains(kctx) {
		leaveAlone(roomToExplain(batch.DefaultMemory()))
	}
	err = kctx.Run(&cli)
	return exitCode(err, ctx, std.err)
}

// noted is a writer that keeps its first error: who prints help and version looks at none.
type noted struct {
	w   io.Writer
	err error
}

func (n *noted) Write(p []byte) (int, error) {
	k, err := n.w.Write(p)
	n.err = cmp.Or(n.err, err)
	return k, err
}

// code is the exit code of what was written, which is code if it was.
func (n *noted) code(code int, stderr io.Writer) int {
	if n.err == nil {
		return code
	}
	err := n.err
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	fmt.Fprintf(stderr, "tracefix: %v\n", &output.PlaceError{Name: "standard output", Err: err})
	return exitFailed
}

// badOutput refuses -o with an empty name, which would be taken for none at all: the output would
// go somewhere else. It refuses a second -o, too: only one of the two would be written.
func badOutput(kctx *kong.Context) error {
	n := 0
	for _, p := range kctx.Path {
		if p.Flag == nil || p.Flag.Name != "out" {
			continue
		}
		if kctx.FlagValue(p.Flag) == "" {
			return errors.New("-o: the name of the output is empty; was a variable not set?")
		}
		if n++; n > 1 {
			return errors.New("-o is there twice; one run writes one output")
		}
	}
	return nil
}

// heapOf is how much memory a command is given at once for what it reads and keeps, told from the
// command line before the grammar is there; 0 for one that reads no trace, or but small ones.
func heapOf(args []string) int64 {
	named := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	switch {
	case named < 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h"):
		return 0
	case slices.Contains([]string{"batch", "snoop", "completion", "complete", "man", "help", "version"}, args[named]):
		return 0
	case small(args):
		return 0
	case slices.Contains(args, "--explain") && args[named] != "activities":
		return max(leastKept, roomToExplain(batch.DefaultMemory()))
	}
	return leastKept
}

// smallFile is the size of a trace up to which it takes longer to get memory at once than is saved by that.
const smallFile = 1 << 20

// small reports whether args name files, and only small ones.
func small(args []string) (is bool) {
	for _, a := range args {
		if f, err := os.Stat(a); err == nil && f.Mode().IsRegular() {
			if f.Size() > smallFile {
				return false
			}
			is = true
		}
	}
	return is
}

// explains reports whether a command line has requests explained. What is known of activities is
// dropped as they end.
func explains(kctx *kong.Context) bool {
	return kctx.Selected().Name != "activities" && slices.ContainsFunc(kctx.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "explain" })
}

// grammar is that of the command line: the table of commands, and those that work on
// other things than one trace. Of commands that args do not name it has but the names: to go
// through all flags takes longer than to tell what is in a small trace. Batches take the flags
// of what they do.
func grammar(cli *CLI, args []string, more ...kong.Option) (*kong.Kong, error) {
	options := append([]kong.Option{
		kong.Name("tracefix"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: false}),
		kong.KindMapper(reflect.String, kong.MapperFunc(asGiven)),
	}, more...)
	add := func(name, help, group string, flags func() any, tags func() []string) {
		if len(args) == 0 || slices.Contains(args, name) || slices.Contains(args, "man") {
			options = append(options, kong.DynamicCommand(name, help, group, flags(), tags()...))
			return
		}
		var hidden []string
		if help == "" {
			hidden = []string{"hidden"}
		}
		var below any = &struct{}{}
		if name == "batch" {
			below = withoutFlags(&BatchCmd{})
		}
		options = append(options, kong.DynamicCommand(name, help, group, below, hidden...))
	}
	tracks := func() []string { return []string{setVar("tracks", strings.Join(command.TrackNames, ", "))} }
	none := func() []string { return nil }
	for i := range command.Table {
		row := &command.Table[i]
		add(row.Name, row.Help, row.Group, func() any { return grammarOf(row) }, func() []string { return append(varsOf(row), tracks()...) })
	}
	add("view", "Repair a trace and open it in the browser, offline.", command.GroupRepair, func() any { return &ViewCmd{Repair: *command.NewRepair()} }, tracks)
	add("batch", "All of that over folders, globs, archives and buckets, with reports.", command.GroupMany, func() any { return newBatchCmd(args) }, func() []string {
		return append(tracks(), setVar("doings", strings.Join(batch.DoingNames(), ",")), setVar("jobs", strings.Join(batch.DoingNames(), ", ")), setVar("gates", batch.GateHelp()))
	})
	add("compare", "Show what moved between two traces, beyond noise; a gate for CI.", command.GroupMany, func() any { return &CompareCmd{} }, none)
	add("snoop", "Record what tools say to a process, as a proxy, for ipc to decode.", command.GroupTalk, func() any { return &SnoopCmd{} }, none)
	add("completion", "Print the completion script for your shell.", command.GroupProgram, func() any { return &CompletionCmd{} }, none)
	add("man", "Print the man page.", command.GroupProgram, func() any { return &ManCmd{} }, none)
	add("complete", "", "", func() any { return &CompleteCmd{} }, func() []string { return []string{"hidden"} })
	return kong.New(cli, options...)
}

// withoutFlags returns a command of which only the names of the commands below it are known.
func withoutFlags(cmd any) any {
	var below []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeOf(cmd).Elem()) {
		if _, ok := f.Tag.Lookup("cmd"); ok {
			below = append(below, reflect.StructField{Name: f.Name, Tag: f.Tag, Type: reflect.TypeFor[struct{}]()})
		}
	}
	return reflect.New(reflect.StructOf(below)).Interface()
}

// setVar is a tag that gives what kong shows of a command the value of ${name}.
func setVar(name, value string) string { return fmt.Sprintf("set:%q", name+"="+value) }

// asGiven takes an argument byte by byte. kong's own mapper goes through JSON, in which a
// file name that is not UTF-8 becomes that of another file.
func asGiven(ctx *kong.DecodeContext, target reflect.Value) error {
	t, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	target.SetString(t.String())
	return nil
}

// exitCode prints err and tells the code it stands for.
func exitCode(err error, ctx context.Context, stderr io.Writer) int {
	var wrong report.UsageError
	var dmg damaged
	var inter interrupted
	var place *output.PlaceError // no mistake of the user, whatever the output was checked for
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &inter):
		fmt.Fprintf(stderr, "tracefix: %s\n", text.Lines(err.Error()))
		return exitInterrupted
	case errors.As(err, &dmg):
		return exitDamaged
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ctx.Err())):
		fmt.Fprintln(stderr, interruptedText)
		return exitInterrupted
	case errors.As(err, &wrong) && !errors.As(err, &place):
		fmt.Fprintf(stderr, "tracefix: %s\n", text.Lines(err.Error()))
		return exitUsage
	}
	fmt.Fprintf(stderr, "tracefix: %s\n", text.Lines(err.Error()))
	return exitFailed
}

const description = `tracefix repairs call stacks that .NET's trace recorders cut, reconstructs HTTP
requests, and converts traces, offline. Start with: tracefix info TRACE

Exit codes: 0 done; 1 failed, nothing written (of several inputs: any failed); 2
usage; 3 done, but an input was damaged and what could be saved was saved
(--strict makes it 1); 130 interrupted.`
