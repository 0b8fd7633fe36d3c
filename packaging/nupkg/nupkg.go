package main

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// id is the name of the tool's package and of its command.
const id = "tracefix"

// A release is what is packed.
type release struct {
	Version  string
	Readme   []byte
	Programs []program
}

// A program is a build of the command.
type program struct {
	RID  string // runtime identifier: linux-x64, linux-musl-x64, osx-arm64, win-x64, ...
	Path string
}

// entry is the name of the program in its package.
func (p *program) entry() string {
	if strings.HasPrefix(p.RID, "win-") {
		return id + ".exe"
	}
	return id
}

// A part is a file in a package. Mode is that of the file where tools unpack it.
type part struct {
	name string
	mode os.FileMode
	data []byte
}

var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// write makes all packages in dir and returns their paths, the one that users name first.
// The same release gives the same bytes.
func (r *release) write(dir string) ([]string, error) {
	if !semantic.MatchString(r.Version) {
		return nil, fmt.Errorf("version %q: expected a semantic version without v, such as 1.2.3 or 1.2.3-rc.1", r.Version)
	}
	if len(r.Programs) == 0 {
		return nil, errors.New("no program to pack")
	}
	var rids strings.Builder
	for i := range r.Programs {
		fmt.Fprintf(&rids, "    <RuntimeIdentifierPackage RuntimeIdentifier=%q Id=%q/>\n", r.Programs[i].RID, id+"."+r.Programs[i].RID)
	}
	settings := fmt.Sprintf(`<DotNetCliTool Version="2">
  <Commands>
    <Command Name=%q/>
  </Commands>
  <RuntimeIdentifierPackages>
%s  </RuntimeIdentifierPackages>
</DotNetCliTool>
`, id, rids.String())
	name, err := r.pack(dir, id, "DotnetTool", []part{{"tools/any/any/DotnetToolSettings.xml", 0o644, []byte(settings)}})
	if err != nil {
		return nil, err
	}
	names := []string{name}
	for i := range r.Programs {
		p := &r.Programs[i]
		data, err := os.ReadFile(p.Path)
		if err != nil {
			return nil, err
		}
		settings := fmt.Sprintf(`<DotNetCliTool Version="2">
  <Commands>
    <Command Name=%q EntryPoint=%q Runner="executable"/>
  </Commands>
</DotNetCliTool>
`, id, p.entry())
		folder := "tools/any/" + p.RID + "/"
		name, err := r.pack(dir, id+"."+p.RID, "DotnetToolRidPackage", []part{
			{folder + "DotnetToolSettings.xml", 0o644, []byte(settings)},
			{folder + p.entry(), 0o755, data},
		})
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// pack writes one package and returns its path.
func (r *release) pack(dir, id, kind string, parts []part) (string, error) {
	parts = append(parts, part{"README.md", 0o644, r.Readme}, part{id + ".nuspec", 0o644, r.nuspec(id, kind)})
	parts = append([]part{
		{"_rels/.rels", 0o644, []byte(fmt.Sprintf(`<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/%s.nuspec" Id="R1"/>
</Relationships>
`, id))},
		{"[Content_Types].xml", 0o644, contentTypes(parts)},
	}, parts...)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, p := range parts {
		h := &zip.FileHeader{Name: p.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(p.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return "", err
		}
		if _, err := io.Copy(w, bytes.NewReader(p.data)); err != nil {
			return "", err
		}
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	path := filepath.Join(dir, id+"."+r.Version+".nupkg")
	return path, os.WriteFile(path, b.Bytes(), 0o666)
}

func (r *release) nuspec(id, kind string) []byte {
	var version bytes.Buffer
	xml.EscapeText(&version, []byte(r.Version))
	return []byte(fmt.Sprintf(`<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>%s</id>
    <version>%s</version>
    <authors>tracefix</authors>
    <description>Repairs the call stacks that .NET's trace recorders cut, and reconstructs HTTP requests with their phases: .nettrace and Chromium JSON in; Perfetto, speedscope, pprof and more out. A native program; needs the .NET SDK 10 or later to install.</description>
    <license type="expression">Apache-2.0</license>
    <readme>README.md</readme>
    <projectUrl>https://github.com/tracefix/tracefix</projectUrl>
    <repository type="git" url="https://github.com/tracefix/tracefix"/>
    <tags>nettrace dotnet-trace eventpipe profiling tracing flamegraph http</tags>
    <packageTypes>
      <packageType name=%q/>
    </packageTypes>
  </metadata>
</package>
`, id, version.String(), kind))
}

// contentTypes is the part that tells the type of every other: by extension, or by name
// where a program has none.
func contentTypes(parts []part) []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
`)
	seen := map[string]bool{}
	for _, p := range parts {
		ext := strings.TrimPrefix(filepath.Ext(p.name), ".")
		switch {
		case ext == "":
			fmt.Fprintf(&b, "  <Override PartName=%q ContentType=\"application/octet-stream\"/>\n", "/"+p.name)
		case !seen[ext]:
			seen[ext] = true
			fmt.Fprintf(&b, "  <Default Extension=%q ContentType=\"application/octet-stream\"/>\n", ext)
		}
	}
	b.WriteString("</Types>\n")
	return []byte(b.String())
}
