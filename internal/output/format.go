package output

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// A Format is a form that an output can have.
type Format struct {
	Name       string
	Also       string   // another name of it; may be empty
	Extensions []string // of file names; the first one is used for names we make
	Help       string   // what it is, or what opens it
}

// Formats are those that a command writes. Their order is that of the help text.
type Formats []Format

// Lookup returns the format of that name, or nil.
func (f Formats) Lookup(name string) *Format {
	for i := range f {
		if name != "" && (f[i].Name == name || f[i].Also == name) {
			return &f[i]
		}
	}
	return nil
}

// Names lists the names.
func (f Formats) Names() []string {
	var names []string
	for _, x := range f {
		names = append(names, x.Name)
		if x.Also != "" {
			names = append(names, x.Also)
		}
	}
	return names
}

// Of returns the format that the name of a file asks for, and the extension that does so
// as it is written there, with no compression behind it. Without one it returns nil and the last extension.
func (f Formats) Of(name string) (format *Format, ext string) {
	base := filepath.Base(name)
	lower := strings.ToLower(base)
	for i := range f {
		for _, e := range f[i].Extensions {
			if strings.HasSuffix(lower, e) && len(e) > len(ext) && len(e) < len(lower) {
				format, ext = &f[i], e
			}
		}
	}
	if format == nil {
		if ext = filepath.Ext(base); len(ext) == len(base) {
			ext = ""
		}
	}
	return format, base[len(base)-len(ext):]
}

// Resolve decides a format: the flag, else the extension of the output's name, else
// otherwise, which holds for names without one and for standard output. An extension that
// asks for nothing known is refused: the file would not be what its name says.
func (f Formats) Resolve(flag, out, otherwise string) (string, error) {
	if err := CheckPacking(out); err != nil {
		return "", err
	}
	if flag != "" {
		format := f.Lookup(flag)
		if format == nil {
			return "", fmt.Errorf("--format: there is no %q; use one of %s%s", flag, strings.Join(f.Names(), ", "), text.DidYouMean(flag, f.Names()))
		}
		return format.Name, nil
	}
	if out == "" || out == "-" {
		return otherwise, nil
	}
	base, _ := TrimCompression(out)
	format, ext := f.Of(base)
	switch {
	case format != nil:
		return format.Name, nil
	case ext == "":
		return otherwise, nil
	}
	var known []string
	for _, x := range f {
		known = append(known, x.Extensions...)
	}
	return "", fmt.Errorf("%s: the extension %s names no format; use one of %s, or --format%s", out, ext, strings.Join(known, " "), text.DidYouMean(ext, known))
}

// CheckPacking refuses the name of an output that ends as that of a file which is packed as no
// output is: it would not be what its name says.
func CheckPacking(name string) error {
	switch _, end := TrimCompression(name); strings.ToLower(end) {
	case ".bz2", ".zip":
		return fmt.Errorf("%s: an output is packed as .gz or .zst, and not as %s; name another one", name, strings.ToLower(end))
	}
	return nil
}

// TrimCompression splits the end that names a compression off a name.
func TrimCompression(name string) (base, end string) {
	for _, c := range []string{".gz", ".zst", ".bz2", ".zip"} {
		if len(name) > len(c) && strings.EqualFold(name[len(name)-len(c):], c) {
			return name[:len(name)-len(c)], name[len(name)-len(c):]
		}
	}
	return name, ""
}
