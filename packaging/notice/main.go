// Command notice prints the licences of all modules that a program links, for the
// releases. It reads what the Go linker noted in the program, so that it can neither
// forget a module nor name one that is not in it.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("notice: ")
	if len(os.Args) < 2 {
		log.Fatal("usage: notice PROGRAM... > NOTICE")
	}
	var info *debug.BuildInfo // of all: a system may need modules of its own
	for _, name := range os.Args[1:] {
		one, err := buildinfo.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		if info == nil {
			info = one
		}
		for _, d := range one.Deps {
			if !slices.ContainsFunc(info.Deps, func(o *debug.Module) bool { return o.Path == d.Path }) {
				info.Deps = append(info.Deps, d)
			}
		}
	}
	w := bufio.NewWriter(os.Stdout)
	if err := notice(w, info); err != nil {
		log.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		log.Fatal(err)
	}
}

// A module is one whose code is in the program.
type module struct{ Path, Version, Dir string }

func notice(w io.Writer, info *debug.BuildInfo) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	modules := []module{{Path: "Go standard library", Version: info.GoVersion, Dir: strings.TrimSpace(string(root))}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		m, err := find(d.Path, d.Version)
		if err != nil {
			return err
		}
		modules = append(modules, *m)
	}
	slices.SortFunc(modules[1:], func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	fmt.Fprintf(w, "tracefix contains code of these modules:\n\n")
	for _, m := range modules {
		fmt.Fprintf(w, "  %s %s\n", m.Path, m.Version)
	}
	for _, m := range modules {
		texts, err := licences(m.Dir)
		if err != nil {
			return err
		}
		if len(texts) == 0 {
			return fmt.Errorf("%s %s has no licence file: its code must not be released", m.Path, m.Version)
		}
		fmt.Fprintf(w, "\n\n%s\n%s %s\n%s\n", line, m.Path, m.Version, line)
		for _, t := range texts {
			fmt.Fprintf(w, "\n%s\n", bytes.TrimSpace(t))
		}
	}
	return nil
}

const line = "--------------------------------------------------------------------------------"

// find asks the go command where the source of a module is.
func find(path, version string) (*module, error) {
	out, err := exec.Command("go", "mod", "download", "-json", path+"@"+version).Output()
	if err != nil {
		return nil, fmt.Errorf("%s@%s: %w", path, version, err)
	}
	var m module
	return &m, json.Unmarshal(out, &m)
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licences reads the licence files in the root of a module.
func licences(dir string) ([][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts [][]byte
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, b)
	}
	return texts, nil
}
