package main

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pack packs fake programs, or for the system the tests run on a real one, and returns the paths.
func pack(t *testing.T, dir, real string) []string {
	t.Helper()
	fake := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(fake, bytes.Repeat([]byte("program "), 1000), 0o755))
	r := &release{Version: "1.2.3-rc.1", Readme: []byte("# tracefix\n")}
	for _, rid := range []string{"linux-x64", "linux-musl-x64", "osx-arm64", "win-x64"} {
		path := fake
		if real != "" && rid == "linux-x64" {
			path = real
		}
		r.Programs = append(r.Programs, program{RID: rid, Path: path})
	}
	names, err := r.write(dir)
	require.NoError(t, err)
	return names
}

func read(t *testing.T, path string) map[string]*zip.File {
	t.Helper()
	z, err := zip.OpenReader(path)
	require.NoError(t, err)
	t.Cleanup(func() { z.Close() })
	files := map[string]*zip.File{}
	for _, f := range z.File {
		files[f.Name] = f
	}
	return files
}

func content(t *testing.T, f *zip.File) []byte {
	t.Helper()
	require.NotNil(t, f)
	r, err := f.Open()
	require.NoError(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return b
}

func TestPackages(t *testing.T) {
	dir := t.TempDir()
	names := pack(t, dir, "")
	require.Len(t, names, 5)
	assert.Equal(t, filepath.Join(dir, "tracefix.1.2.3-rc.1.nupkg"), names[0])
	assert.Equal(t, filepath.Join(dir, "tracefix.win-x64.1.2.3-rc.1.nupkg"), names[4])

	var tool struct {
		Version  string `xml:"Version,attr"`
		Packages []struct {
			RID string `xml:"RuntimeIdentifier,attr"`
			ID  string `xml:"Id,attr"`
		} `xml:"RuntimeIdentifierPackages>RuntimeIdentifierPackage"`
	}
	require.NoError(t, xml.Unmarshal(content(t, read(t, names[0])["tools/any/any/DotnetToolSettings.xml"]), &tool))
	assert.Equal(t, "2", tool.Version)
	require.Len(t, tool.Packages, 4)
	for i, p := range tool.Packages {
		files := read(t, names[i+1])
		folder := "tools/any/" + p.RID + "/"
		var settings struct {
			Command struct {
				Name   string `xml:"Name,attr"`
				Entry  string `xml:"EntryPoint,attr"`
				Runner string `xml:"Runner,attr"`
			} `xml:"Commands>Command"`
		}
		require.NoError(t, xml.Unmarshal(content(t, files[folder+"DotnetToolSettings.xml"]), &settings))
		assert.Equal(t, "executable", settings.Command.Runner)
		entry := files[folder+settings.Command.Entry]
		assert.Len(t, content(t, entry), 8000)
		assert.NotZero(t, entry.Mode()&0o111, "%s can be run", p.RID)
		var spec struct {
			ID      string `xml:"metadata>id"`
			Version string `xml:"metadata>version"`
			Readme  string `xml:"metadata>readme"`
			Types   []struct {
				Name string `xml:"name,attr"`
			} `xml:"metadata>packageTypes>packageType"`
		}
		require.NoError(t, xml.Unmarshal(content(t, files[p.ID+".nuspec"]), &spec))
		assert.Equal(t, p.ID, spec.ID)
		assert.Equal(t, "1.2.3-rc.1", spec.Version)
		assert.Equal(t, "DotnetToolRidPackage", spec.Types[0].Name)
		assert.NotNil(t, files[spec.Readme])
		checkTypes(t, files)
	}
}

// checkTypes checks that [Content_Types].xml tells the type of every part, without which
// NuGet refuses a package.
func checkTypes(t *testing.T, files map[string]*zip.File) {
	t.Helper()
	var types struct {
		Default []struct {
			Extension string `xml:"Extension,attr"`
		}
		Override []struct {
			Part string `xml:"PartName,attr"`
		}
	}
	require.NoError(t, xml.Unmarshal(content(t, files["[Content_Types].xml"]), &types))
	known := map[string]bool{}
	for _, d := range types.Default {
		assert.False(t, known["."+d.Extension], "%s stands once", d.Extension)
		known["."+d.Extension] = true
	}
	for _, o := range types.Override {
		known[o.Part] = true
	}
	for name := range files {
		if name != "[Content_Types].xml" {
			assert.True(t, known[filepath.Ext(name)] || known["/"+name], name)
		}
	}
}

func TestSameBytes(t *testing.T) {
	a, b := pack(t, t.TempDir(), ""), pack(t, t.TempDir(), "")
	for i := range a {
		x, err := os.ReadFile(a[i])
		require.NoError(t, err)
		y, err := os.ReadFile(b[i])
		require.NoError(t, err)
		assert.True(t, bytes.Equal(x, y), a[i])
	}
}

func TestRefused(t *testing.T) {
	for version, want := range map[string]string{"": "semantic version", "v1.2.3": "without v", "1.2.3": "no program"} {
		_, err := (&release{Version: version}).write(t.TempDir())
		assert.ErrorContains(t, err, want)
	}
}

// TestInstall installs the packages with the .NET SDK, where there is one that can.
func TestInstall(t *testing.T) {
	dotnet, err := exec.LookPath("dotnet")
	if err != nil || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("needs the .NET SDK 10 on Linux x64: the packages were not installed")
	}
	dir := t.TempDir()
	tool := filepath.Join(dir, "tracefix")
	out, err := exec.Command("go", "build", "-o", tool, "../../cmd/tracefix").CombinedOutput()
	require.NoError(t, err, string(out))
	pack(t, dir, tool)
	bin := filepath.Join(dir, "bin")
	out, err = exec.Command(dotnet, "tool", "install", id, "--version", "1.2.3-rc.1", "--add-source", dir, "--tool-path", bin).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command(filepath.Join(bin, id), "--version").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.NotEmpty(t, out)
}
