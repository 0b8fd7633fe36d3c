package batch

import (
	"os"
	"path/filepath"
	"strings"
)

// reads is what a batch reads of this machine, as far as its arguments tell: no output may take the
// place of it, also with Force, and whether it was read already or not.
type reads struct {
	files map[string]string // the names, by the folded path without links
	trees []walked
}

// A walked is a folder that is walked. pats match what is taken of it; nil: all.
type walked struct {
	dir  string // without links
	pats []string
}

// withoutLinks is the one path of what is there; "" if nothing is.
func withoutLinks(name string) string {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return ""
	}
	return real
}

func (r *runner) findReads() *reads {
	x := &reads{files: map[string]string{}}
	file := func(name string) { x.files[fold(withoutLinks(name))] = name }
	out := withoutLinks(r.Out)
	for _, p := range r.Paths {
		if p = local(p); p == "-" || isURL(p) {
			continue
		}
		var t walked
		switch st, err := os.Stat(p); {
		case err == nil && !st.IsDir():
			file(p)
			continue
		case err == nil:
			t.dir = withoutLinks(p)
		case hasMeta(p):
			t.dir, t.pats = splitPattern(p)
			t.dir = withoutLinks(t.dir)
		}
		// The outputs below a folder that is walked are left out of it.
		if t.dir != "" && (out == t.dir || !within(out, t.dir)) {
			x.trees = append(x.trees, t)
		}
	}
	for _, e := range r.part {
		if e.Path != "" {
			file(e.Path)
		}
	}
	return x
}

// has reports whether the batch reads what is called name. ours says that an earlier batch made it:
// it may lie in a folder that is walked.
func (x *reads) has(name string, ours bool) bool {
	real := withoutLinks(name)
	if real == "" {
		return false
	}
	if in := x.files[fold(real)]; in != "" {
		a, err := os.Stat(in)
		b, err2 := os.Stat(real)
		if err == nil && err2 == nil && os.SameFile(a, b) {
			return true
		}
	}
	for _, t := range x.trees {
		if ours || !within(real, t.dir) {
			continue
		}
		rel, err := filepath.Rel(t.dir, real)
		if err == nil && (t.pats == nil || matchElems(t.pats, strings.Split(filepath.ToSlash(rel), "/"), false)) {
			return true
		}
	}
	return false
}
