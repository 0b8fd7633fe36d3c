package profile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// An ActivityMatcher says which activities are meant by Selection.Activities: names, GUIDs and paths.
type ActivityMatcher struct {
	names []string
	guids [][16]byte
	paths []activityPath
}

// An activityPath is a path that is asked for, of one process or of any: //1/2, or as PerfView
// prints those of other processes, /#4297/1/2/.
type activityPath struct {
	process uint32 // 0: any
	numbers string // 1/2
}

// NewActivityMatcher returns a matcher for patterns.
func NewActivityMatcher(patterns []string) *ActivityMatcher {
	m := &ActivityMatcher{names: patterns}
	for _, a := range patterns {
		if id, err := text.ParseGUID(a); err == nil {
			m.guids = append(m.guids, id)
		} else if p, ok := parseActivityPath(a); ok {
			m.paths = append(m.paths, p)
		}
	}
	return m
}

// IsActivityID reports whether a pattern is a GUID or a path, which an id alone answers.
func IsActivityID(pattern string) bool {
	_, err := text.ParseGUID(pattern)
	_, ok := parseActivityPath(pattern)
	return err == nil || ok
}

func parseActivityPath(s string) (p activityPath, ok bool) {
	if rest, ok := strings.CutPrefix(s, "/#"); ok {
		n, path, _ := strings.Cut(rest, "/")
		pid, err := strconv.ParseUint(n, 10, 32)
		if err != nil {
			return p, false
		}
		p.process, s = uint32(pid), "/"+path
	}
	if !strings.Contains(s, "/") {
		return p, false
	}
	p.numbers = strings.Trim(s, "/")
	numbers, over, hasOver := strings.Cut(p.numbers, "$")
	for n := range strings.SplitSeq(numbers, "/") {
		if !isOrdinal(n) {
			return p, false
		}
	}
	return p, !hasOver || isOrdinal(over)
}

// isOrdinal reports whether s is a number of a path as paths are printed; ? is one that was lost.
func isOrdinal(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return s == "?" || err == nil && n > 0 && s[0] != '0'
}

// HasPaths reports whether paths are asked for, so that Path may answer yes.
func (m *ActivityMatcher) HasPaths() bool { return len(m.paths) > 0 }

// ID reports whether the id of an activity is asked for.
func (m *ActivityMatcher) ID(id [16]byte) bool {
	return len(m.guids) > 0 && slices.Contains(m.guids, id)
}

// Name reports whether a pattern fits the name of an activity, with or without its provider before it.
func (m *ActivityMatcher) Name(provider, name string) bool {
	return name != "" && slices.ContainsFunc(m.names, func(p string) bool { return text.Match(p, name) || text.Match(p, provider+"/"+name) })
}

// Path reports whether the path of an activity, //1/2/3, is asked for, or one above it. The process
// is that in its id, 0 if that is not known. Below an overflowed path, //1/2$7, nobody knows what
// is.
func (m *ActivityMatcher) Path(process uint32, path string) bool {
	path = strings.TrimPrefix(path, "//")
	for i := range m.paths {
		p := &m.paths[i]
		rest, ok := strings.CutPrefix(path, p.numbers)
		if ok && (p.process == 0 || p.process == process) &&
			(rest == "" || (rest[0] == '/' || rest[0] == '$') && !strings.Contains(p.numbers, "$")) {
			return true
		}
	}
	return false
}
