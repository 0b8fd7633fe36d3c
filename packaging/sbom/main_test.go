package main

import (
	"encoding/json"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.99", Main: debug.Module{Path: "example.invalid/program", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.invalid/a", Version: "v1.2.3", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
			{Path: "example.invalid/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.invalid/c", Version: "v2.0.0"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "-s"}},
	}
	b, err := describe(info, "4.5.6")
	require.NoError(t, err)
	var doc document
	require.NoError(t, json.Unmarshal(b, &doc))
	assert.Equal(t, "4.5.6", doc.Metadata.Component.Version)
	assert.Equal(t, "pkg:golang/example.invalid/program@4.5.6", doc.Metadata.Component.URL)
	assert.Equal(t, []property{{"go:GOOS", "linux"}}, doc.Metadata.Component.Properties)
	var urls []string
	for _, c := range doc.Components {
		urls = append(urls, c.URL)
	}
	want := []string{"pkg:golang/std@1.99", "pkg:golang/example.invalid/a@v1.2.3", "pkg:golang/example.invalid/c@v2.0.0"}
	assert.Equal(t, want, urls, "what stands in for a module is what is linked")
	assert.Equal(t, []sum{{"SHA-256", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}}, doc.Components[1].Hashes)
	assert.Equal(t, want, doc.Dependencies[0].On)
	again, err := describe(info, "4.5.6")
	require.NoError(t, err)
	assert.Equal(t, b, again)
	info.Deps[0].Sum = "h1:?"
	_, err = describe(info, "")
	assert.ErrorContains(t, err, "example.invalid/a")
}
