package main

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

// Set by the release build; a build by `go install` or in a clone has it all, or most of
// it, in its build information.
var release, commit, date string

// versionFlag is --version. That of kong wants to be told the version by every command line, in a table that
// kong copies for each command that there is.
type versionFlag bool

// BeforeReset implements a hook of kong.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	fmt.Fprintln(app.Stdout, version())
	app.Exit(exitOK)
	return nil
}

// untagged is the end of the version of a commit without a tag: its time and its hash.
var untagged = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[.-](\d{14})-([0-9a-f]{12})(?:\+|$)`) })

// version tells version, commit, date and Go version, as far as the build knows them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return strings.TrimSpace("tracefix " + release)
	}
	return versionOf(info)
}

// versionOf is version of a build of which that is known. What the module proxy hands out tells its
// version only: that of an untagged commit holds its time and its hash.
func versionOf(info *debug.BuildInfo) string {
	v, rev, at := release, commit, date
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
	if rev == "" {
		if m := untagged().FindStringSubmatch(v); m != nil {
			rev, at = m[2], m[1][:4]+"-"+m[1][4:6]+"-"+m[1][6:8]
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
