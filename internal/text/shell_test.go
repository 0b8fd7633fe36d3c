package text

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A file whose name begins with a dash is no flag; a dash alone is standard input.
func TestShellWordOfDash(t *testing.T) {
	assert.Equal(t, "./-a.nettrace", ShellWord("-a.nettrace"))
	assert.Equal(t, "-", ShellWord("-"))
}

func TestWindowsWord(t *testing.T) {
	for s, want := range map[string]string{
		`C:\traces\a.nettrace`:    `C:\traces\a.nettrace`,
		`C:\my traces\a.nettrace`: `"C:\my traces\a.nettrace"`,
		`C:\my traces\`:           `"C:\my traces\\"`,
		`System.Net.Http,A:0x1:4`: `"System.Net.Http,A:0x1:4"`, // an array in PowerShell
		`it's.nettrace`:           `"it's.nettrace"`,
		`$it's.nettrace`:          `'$it''s.nettrace'`,
		`it’s.nettrace`:           `"it’s.nettrace"`,
		`a”;b’.nettrace`:          `'a”;b’’.nettrace'`,
		`größe.nettrace`:          `größe.nettrace`,
		``:                        `""`,
	} {
		assert.Equal(t, want, windowsWord(s))
	}
}

func TestAnyShellWord(t *testing.T) {
	for s, want := range map[string]string{
		`gc-verbose`:               `gc-verbose`,
		`A:0x1:4:Interval=1`:       `A:0x1:4:Interval=1`,
		`A:0x1:4,B:0x2:5`:          `"A:0x1:4,B:0x2:5"`,
		`A:0x1:4:Specs=[AS]*`:      `"A:0x1:4:Specs=[AS]*"`,
		`it's`:                     `"it's"`,
		`Specs=\"a;b\nc\"`:         `'Specs=\"a;b\nc\"'`,
		"A$(reboot),B`reboot`,%C%": "'A$(reboot),B`reboot`,%C%'",
		`it's $HOME`:               ShellWord(`it's $HOME`),
		``:                         `""`,
	} {
		assert.Equal(t, want, AnyShellWord(s))
	}
}
