// Command bench times whole commands of tracefix in turns with what they are compared to: cp of
// the output, one processor instead of all, and an older build. It prints ratios, the medians
// of pairs that ran one after the other: a machine that is slow for a while is so for both.
//
//	go run ./packaging/bench -new bin/tracefix [-old OLD] [-n 5] TRACE...
//
// With -grow it makes recordings of several sizes of a nettrace, and prints what a megabyte of
// them and the peak of memory cost; -make writes such a recording to standard output:
//
//	go run ./packaging/bench -new bin/tracefix -grow 10,100,1000 [-vary threads|stacks] TRACE
//	go run ./packaging/bench -make 1000 [-vary threads|stacks] TRACE > long.nettrace
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A task is a command line that writes an output.
type task struct {
	args  []string
	out   string // extension of the output
	reads string // part of the names of the traces that it is for
}

var tasks = []task{
	{[]string{"convert"}, ".chromium.json", ".nettrace"},
	{[]string{"convert"}, ".speedscope.json", ".nettrace"},
	{[]string{"convert"}, ".chromium.json.gz", ".nettrace"},
	{[]string{"convert"}, ".chromium.json.zst", ".nettrace"},
	{[]string{"repair"}, ".chromium.json", ".nettrace"},
	{[]string{"repair"}, ".out.json", ".chromium.json"},
	{[]string{"top"}, ".txt", ".nettrace"},
	{[]string{"http"}, ".ndjson", ".nettrace"},
	{[]string{"http", "--explain"}, ".ndjson", ".nettrace"},
	{[]string{"events"}, ".ndjson", ".nettrace"},
	{[]string{"info"}, ".txt", ".nettrace"},
}

func main() {
	current := flag.String("new", "bin/tracefix", "the program to be timed")
	old := flag.String("old", "", "an older one to compare it with")
	n := flag.Int("n", 5, "runs of each")
	sizes := flag.String("grow", "", "measure recordings of these sizes in MB")
	size := flag.Int64("make", 0, "write a recording of so many MB")
	vary := flag.String("vary", "", "what a recording has many of: threads or stacks")
	only := flag.String("only", "", "part of the command lines that -grow measures")
	flag.Parse()
	if *size > 0 {
		exit(repeated(os.Stdout, flag.Arg(0), *vary, *size<<20))
	}
	dir, err := os.MkdirTemp("", "tracefix-bench-*")
	if err == nil {
		if *sizes != "" {
			err = grow(dir, *current, flag.Arg(0), *vary, *sizes, *only)
		} else {
			err = bench(dir, *current, *old, *n, flag.Args())
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func bench(dir, current, old string, n int, traces []string) error {
	if err := starts(current, old, 8*n); err != nil {
		return err
	}
	fmt.Println("Medians. The last three columns are wall times divided by that of the run beside it.")
	fmt.Printf("%-58s %9s %8s %8s %9s %11s %9s %9s\n", "", "MB out", "wall s", "CPU s", "peak MB", "one core /", "cp /", "old /")
	for _, trace := range traces {
		for i, t := range tasks {
			if !strings.Contains(filepath.Base(trace), t.reads) {
				continue
			}
			if err := t.time(filepath.Join(dir, fmt.Sprint(i)), trace, current, old, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// starts tells what a command takes that does nothing else than to start, in turns with an older program: the
// least, which is what it takes, and the median, which is what the machine makes of it.
func starts(current, old string, n int) error {
	programs := []string{current}
	fmt.Printf("Start, ms of wall time, least and median of %d:", n)
	if old != "" {
		programs = append(programs, old)
		fmt.Print(" now; old")
	}
	fmt.Println()
	for _, arg := range []string{"--help", "--version"} {
		fmt.Printf("%-12s", arg)
		took := make([][]float64, len(programs))
		for range n {
			for i, program := range programs {
				r, err := execute(exec.Command(program, arg))
				if err != nil {
					return err
				}
				took[i] = append(took[i], r.wall.Seconds()*1000)
			}
		}
		for _, ms := range took {
			slices.Sort(ms)
			fmt.Printf(" %6.1f %6.1f", ms[0], ms[len(ms)/2])
		}
		fmt.Println()
	}
	fmt.Println()
	return nil
}

// A run is what one process took.
type run struct {
	wall, cpu time.Duration
	peak      int64 // bytes; 0: this system does not tell
}

// time runs a task n times, in turns with what it is compared to, after one that does not count.
func (t *task) time(dir, trace, current, old string, n int) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	out := filepath.Join(dir, "out"+t.out)
	line := append(slices.Clone(t.args), trace, "-q", "--force", "-o", out)
	var runs []run
	var one, copied, older []float64 // divided by the run before
	for i := range n + 1 {
		r, err := execute(exec.Command(current, line...))
		if err != nil {
			return err
		}
		alone, err := execute(exec.Command(current, append(line, "--jobs", "1")...))
		if err != nil {
			return err
		}
		began := time.Now()
		if err := copyFile(out, filepath.Join(dir, "copy")); err != nil {
			return err
		}
		took := time.Since(began)
		var before run
		if old != "" {
			if before, err = execute(exec.Command(old, line...)); err != nil {
				return err
			}
		}
		if i == 0 {
			continue
		}
		runs = append(runs, r)
		one = append(one, alone.wall.Seconds()/r.wall.Seconds())
		copied = append(copied, took.Seconds()/r.wall.Seconds())
		older = append(older, before.wall.Seconds()/r.wall.Seconds())
	}
	st, err := os.Stat(out)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s %s to %s", strings.Join(t.args, " "), filepath.Base(trace), t.out)
	fmt.Printf("%-58s %9.1f %8.2f %8.2f %9.0f %11.2f %9.2f %9.2f\n", name, float64(st.Size())/1e6,
		median(runs, func(r run) float64 { return r.wall.Seconds() }), median(runs, func(r run) float64 { return r.cpu.Seconds() }),
		median(runs, func(r run) float64 { return float64(r.peak) / 1e6 }),
		median(one, identity), median(copied, identity), median(older, identity))
	return os.RemoveAll(dir)
}

// execute runs a command to its end. Exit code 3 tells of a damaged trace, and is none of a failure.
func execute(c *exec.Cmd) (run, error) {
	c.Stderr = os.Stderr
	began := time.Now()
	err := c.Run()
	took := time.Since(began)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		err = nil
	}
	if err != nil {
		return run{}, fmt.Errorf("%s: %w", c, err)
	}
	s := c.ProcessState
	return run{took, s.UserTime() + s.SystemTime(), peak(s)}, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func identity(v float64) float64 { return v }

func median[T any](of []T, value func(T) float64) float64 {
	sorted := slices.SortedFunc(slices.Values(of), func(a, b T) int { return cmp.Compare(value(a), value(b)) })
	return value(sorted[len(sorted)/2])
}
