package text

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWindowsWord(t *testing.T) {
	for s, want := range map[string]string{
		`C:\traces\a.nettrace`:    `C:\traces\a.nettrace`,
		`C:\my traces\a.nettrace`: `"C:\my traces\a.nettrace"`,
		`C:\my traces\`:           `"C:\my traces\\"`,
		`System.Net.Http,A:0x1:4`: `"System.Net.Http,A:0x1:4"`, // two words in PowerShell
		`it's.nettrace`:           `"it's.nettrace"`,
		`$it's.nettrace`:          `'$it''s.nettrace'`,
		`größe.nettrace`:          `größe.nettrace`,
		``:                        `""`,
	} {
		assert.Equal(t, want, windowsWord(s))
	}
}
