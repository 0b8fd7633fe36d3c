package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// growing are the command lines whose growth is measured.
var growing = [][]string{
	{"info"},
	{"top"},
	{"http", "--format", "ndjson"},
	{"events"},
	{"convert", "--format", "chromium"},
	{"convert", "--format", "speedscope"},
	{"convert", "--format", "ndjson"},
	{"convert", "--format", "nettrace"},
	{"repair", "--format", "chromium"},
	{"repair", "--format", "nettrace"},
}

// grow times the commands on recordings of several sizes made of one trace: where the time for a
// megabyte stays the same, it is linear.
func grow(dir, current, trace, vary, sizes, only string) error {
	fmt.Printf("%-34s %8s %8s %8s %9s %9s\n", "", "MB in", "wall s", "CPU s", "CPU ms/MB", "peak MiB")
	for _, word := range strings.Split(sizes, ",") {
		megabytes, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return fmt.Errorf("-grow %s: sizes in MB, such as 10,100,1000", sizes)
		}
		name := filepath.Join(dir, word+".nettrace")
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		if err := errors.Join(repeated(f, trace, vary, megabytes<<20), f.Close()); err != nil {
			return err
		}
		st, err := os.Stat(name)
		if err != nil {
			return err
		}
		size := float64(st.Size()) / 1e6
		for _, args := range growing {
			if what := strings.Join(args, " "); strings.Contains(what, only) {
				r, err := execute(exec.Command(current, append(args[:len(args):len(args)], name, "-q", "-o", "-")...))
				if err != nil {
					return err
				}
				fmt.Printf("%-34s %8.0f %8.2f %8.2f %9.2f %9.0f\n", what, size, r.wall.Seconds(), r.cpu.Seconds(), r.cpu.Seconds()*1e3/size, float64(r.peak)/(1<<20))
			}
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
