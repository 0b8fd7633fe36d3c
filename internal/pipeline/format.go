package pipeline

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tracefix/tracefix/internal/input"
)

// compressions are the ends that ask for compression around any format.
var compressions = []string{".gz", ".zst"}

// trimCompression splits a compression's end off name.
func trimCompression(name string) (base, end string) {
	for _, c := range append(compressions, ".zip") {
		if len(name) > len(c) && strings.EqualFold(name[len(name)-len(c):], c) {
			return name[:len(name)-len(c)], name[len(name)-len(c):]
		}
	}
	return name, ""
}

// FormatOf tells the format of an output by its name; "" if the name tells none.
func FormatOf(name string) string {
	base, _ := trimCompression(strings.ToLower(filepath.Base(name)))
	for _, o := range Outputs {
		for _, e := range o.Extensions {
			if strings.HasSuffix(base, e) && (e != ".json" || !strings.HasSuffix(base, ".speedscope.json")) {
				return o.Name
			}
		}
	}
	return ""
}

// ownFormat is the format that an input of kind k has itself.
func ownFormat(k input.Kind) string {
	switch k {
	case input.Nettrace, input.Netperf:
		return "nettrace"
	case input.Speedscope:
		return "speedscope"
	}
	return "chromium"
}

// DefaultOutput is the output's name where the user gave none: beside the input,
// with mark (such as ".fixed") before the extension. format "" keeps the input's own.
func DefaultOutput(in *input.File, mark, format string) string {
	if in.Name == "-" {
		return "-"
	}
	base, comp := trimCompression(in.Name)
	if strings.EqualFold(comp, ".zip") {
		comp = ""
	}
	ext := knownExtension(base)
	base = base[:len(base)-len(ext)]
	if format != "" && format != ownFormat(in.Kind) {
		ext, comp = Output(format).Extensions[0], ""
	}
	if ext == "" {
		ext = Output(ownFormat(in.Kind)).Extensions[0]
	}
	if in.Kind == input.Netperf && strings.EqualFold(ext, ".netperf") {
		ext = ".nettrace" // what is written is NetTrace v4
	}
	return base + mark + ext + comp
}

// knownExtension returns the longest known extension of name, else its last one.
func knownExtension(name string) string {
	lower := strings.ToLower(filepath.Base(name))
	best := ""
	for _, o := range Outputs {
		for _, e := range o.Extensions {
			if strings.HasSuffix(lower, e) && len(e) > len(best) && len(e) < len(lower) {
				best = e
			}
		}
	}
	if best == "" {
		best = filepath.Ext(lower)
		if len(best) == len(lower) {
			return ""
		}
	}
	return name[len(name)-len(best):]
}

// resolveFormat decides the output format: the flag, else the output's name, else the
// input's own.
func resolveFormat(flag, out string, k input.Kind) (string, error) {
	if flag != "" {
		if Output(flag) == nil {
			return "", fmt.Errorf("--format must be one of %s, not %q", strings.Join(Formats(), ", "), flag)
		}
		return flag, nil
	}
	if out != "" && out != "-" {
		if f := FormatOf(out); f != "" {
			return f, nil
		}
		base, _ := trimCompression(out)
		if e := filepath.Ext(base); e != "" {
			return "", fmt.Errorf("%s: the extension %s names no format; use one of %s, or --format", out, e, strings.Join(extensions(), " "))
		}
	}
	return ownFormat(k), nil
}

func extensions() []string {
	var e []string
	for _, o := range Outputs {
		e = append(e, o.Extensions...)
	}
	return e
}
