package input

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"

	"github.com/tracefix/tracefix/nettrace"
)

func TestVersionInPath(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so":            "10.0.12",
		`C:\Program Files\dotnet\shared\Microsoft.NETCore.App\6.0.15\coreclr.dll`:         "6.0.15",
		"/usr/share/dotnet/shared/Microsoft.NETCore.App/9.0.0-rc.2.24473.5/libcoreclr.so": "9.0.0-rc.2.24473.5",
		"/srv/1.2.3/app/libcoreclr.so":                                                    "", "": "",
	} {
		assert.Equal(t, want, versionInPath(path))
	}
}

func TestProcessName(t *testing.T) {
	for cmd, want := range map[string]string{
		"":                                   "",
		"  ":                                 "",
		"/srv/app":                           "app",
		"/srv/App.dll":                       "App",
		`C:\app\Shop.EXE --x y.dll`:          "Shop",
		`"C:\Program Files\x y\App.exe" -v`:  "App",
		"dotnet /srv/bin/Shop.dll --a b.dll": "Shop",
		`dotnet.exe exec "/a b/Shop.DLL"`:    "Shop",
		"dotnet run":                         "dotnet",
		"app.exeter":                         "app.exeter",
		".dll":                               ".dll",
		"a.dll":                              "a",
	} {
		assert.Equal(t, want, ProcessName(cmd), "%q", cmd)
	}
}

// The path of the library tells the version best, then the number of the library of classes, then
// that of the runtime.
func TestRuntimeInformation(t *testing.T) {
	payload := func(bcl, vm [3]uint16, path string) []byte {
		b := []byte{1, 0, 2, 0}
		for _, v := range [][3]uint16{bcl, vm} {
			for _, n := range append(v[:], 99) {
				b = binary.LittleEndian.AppendUint16(b, n)
			}
		}
		b = append(b, 1, 0, 0, 0, 7)
		text := func(s string) {
			for _, u := range utf16.Encode([]rune(s + "\x00")) {
				b = binary.LittleEndian.AppendUint16(b, u)
			}
		}
		text("app --x")
		b = append(b, make([]byte, 16)...)
		text(path)
		return b
	}
	for name, c := range map[string]struct {
		bcl, vm [3]uint16
		path    string
		want    string
	}{
		"path":    {[3]uint16{10, 0, 11}, [3]uint16{10, 0, 12}, "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so", "10.0.12"},
		"classes": {[3]uint16{10, 0, 11}, [3]uint16{10, 1, 12}, "/srv/app/libcoreclr.so", "10.0.11"},
		"runtime": {[3]uint16{4, 0, 0}, [3]uint16{5, 1, 2}, "/srv/app/libcoreclr.so", "5.1"},
		"neither": {[3]uint16{4, 0, 0}, [3]uint16{4, 700, 0}, "", ""},
	} {
		command, version := RuntimeInformation(&nettrace.Event{Metadata: &nettrace.Metadata{}, Payload: payload(c.bcl, c.vm, c.path)})
		assert.Equal(t, []string{"app --x", c.want}, []string{command, version}, name)
	}
}
