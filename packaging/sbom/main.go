// Command sbom writes what a program is made of as a CycloneDX document, for the releases.
// It reads what the Go linker noted in the program. The same program gives the same bytes:
// there is no serial number and no time in it.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("sbom: ")
	version := flag.String("version", "", "version of the program; default: that in it")
	out := flag.String("o", "", "the document")
	flag.Parse()
	if flag.NArg() != 1 || *out == "" {
		log.Fatal("usage: sbom [-version V] -o DOCUMENT PROGRAM")
	}
	info, err := buildinfo.ReadFile(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	b, err := describe(info, *version)
	if err == nil {
		err = os.WriteFile(*out, b, 0o666)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// The parts of a CycloneDX 1.5 document that are used.
// Source: https://cyclonedx.org/docs/1.5/json/
type (
	document struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		Scope      string     `json:"scope,omitempty"`
		Hashes     []sum      `json:"hashes,omitempty"`
		URL        string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	sum struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"` // hexadecimal
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

// describe makes the document of a program.
func describe(info *debug.BuildInfo, version string) ([]byte, error) {
	main := info.Main
	main.Version = cmp.Or(version, main.Version)
	program, err := of(&main, "application")
	if err != nil {
		return nil, err
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision":
			program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	std := component{Type: "library", Name: "std", Version: info.GoVersion, Scope: "required"}
	std.URL = "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	std.Ref = std.URL
	doc := document{Format: "CycloneDX", Spec: "1.5", Version: 1, Components: []component{std}}
	on := []string{std.Ref}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		c, err := of(d, "library")
		if err != nil {
			return nil, err
		}
		c.Scope = "required"
		doc.Components, on = append(doc.Components, c), append(on, c.Ref)
	}
	doc.Metadata.Component = program
	doc.Dependencies = []dependency{{program.Ref, on}}
	b, err := json.MarshalIndent(doc, "", "  ")
	return append(b, '\n'), err
}

// of describes a module. Its hash is that of go.sum: SHA-256 over the hashes of its files.
func of(m *debug.Module, kind string) (component, error) {
	c := component{Type: kind, Name: m.Path, Version: m.Version, URL: "pkg:golang/" + m.Path + "@" + m.Version}
	c.Ref = c.URL
	if h, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		b, err := base64.StdEncoding.DecodeString(h)
		if err != nil {
			return c, fmt.Errorf("%s: %w", m.Path, err)
		}
		c.Hashes = []sum{{"SHA-256", hex.EncodeToString(b)}}
	}
	return c, nil
}
