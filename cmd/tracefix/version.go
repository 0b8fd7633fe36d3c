package main

import (
	"runtime/debug"
	"strings"
)

// Set by the release build; a build by `go install` or in a clone has it all, or most of
// it, in its build information.
var release, commit, date string

// version tells version, commit, date and Go version, as far as the build knows them.
func version() string {
	v, rev, at := release, commit, date
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return strings.TrimSpace("tracefix " + v)
	}
	if v == "" && info.Main.Version != "(devel)" {
		v = strings.TrimPrefix(info.Main.Version, "v")
	}
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && rev == "":
			rev = s.Value
		case s.Key == "vcs.time" && at == "":
			at = s.Value
		case s.Key == "vcs.modified" && s.Value == "true" && commit == "":
			changed = ", changed"
		}
	}
	if v == "" {
		v = "devel"
	}
	if len(rev) > 12 {
		rev = rev[:12]
	}
	day, _, _ := strings.Cut(at, "T")
	what := strings.TrimSpace(rev + " " + day)
	if what != "" && !strings.Contains(v, rev) || day != "" {
		v += " (" + what + changed + ")"
	}
	return v + " " + info.GoVersion
}
