package input

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
