package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersion(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.time", Value: "2026-11-23T05:00:00Z"}}
	for _, c := range []struct {
		what, module string
		settings     []debug.BuildSetting
		want         string
	}{
		{"go install of a tag", "v1.2.3", nil, "1.2.3 go1.26.8"},
		{"go install of a commit", "v0.0.0-20261123050000-0123456789ab", nil, "0.0.0-20261123050000-0123456789ab (0123456789ab 2026-11-23) go1.26.8"},
		{"go install of a commit behind a tag", "v1.2.4-0.20261123050000-0123456789ab", nil, "1.2.4-0.20261123050000-0123456789ab (0123456789ab 2026-11-23) go1.26.8"},
		{"a clone", "(devel)", settings, "devel (0123456789ab 2026-11-23) go1.26.8"},
		{"a changed clone", "(devel)", append(settings, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "devel (0123456789ab 2026-11-23, changed) go1.26.8"},
		{"no version control", "(devel)", nil, "devel go1.26.8"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: c.module}, Settings: c.settings}
		assert.Equal(t, c.want, versionOf(info), c.what)
	}
}
