package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expectations of the scripts")

// programs are what the test binary is when it is called by that name.
var programs = map[string]func(){"tracefix": main}

func TestMain(m *testing.M) {
	testscript.Main(m, programs)
}

// TestScripts runs the command as its users do: one behaviour for each file of
// testdata/script. $DATA is the folder of the test traces.
//
// Beyond the commands of testscript there are
//
//	exits CODE PROGRAM ARG...      the program must end with this code
//	cutfile FROM TO BYTES          copy the first bytes of a file
//	flipbyte FILE OFFSET           turn over the bits of one byte
//	unzst FROM TO                  unpack a zstd file
//	gzip FROM TO                   pack a file
//	rename16 FILE OLD NEW          put another text of the same length where OLD stands in UTF-16
func TestScripts(t *testing.T) {
	data, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DATA", data)
			e.Setenv("TMPDIR", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":    exits,
			"cutfile":  cutFile,
			"flipbyte": flipByte,
			"unzst":    unZst,
			"gzip":     gZip,
			"gunzip":   gUnzip,
			"rename16": rename16,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var code interface{ ExitCode() int }
		if c, ok := err.(interface{ ExitCode() int }); ok {
			code = c
		} else {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = code.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s ended with code %d, not %d", args[1], got, want)
	}
}

func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cutfile FROM TO BYTES")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	if n < 0 { // from the end
		n += len(b)
	}
	if n < 0 || n > len(b) {
		ts.Fatalf("%s has %d bytes only", args[0], len(b))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b[:n], 0o666))
}

func rename16(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 || len(args[1]) != len(args[2]) {
		ts.Fatalf("usage: rename16 FILE OLD NEW, of one length")
	}
	wide := func(s string) (b []byte) {
		for _, r := range utf16.Encode([]rune(s)) {
			b = binary.LittleEndian.AppendUint16(b, r)
		}
		return b
	}
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	if !bytes.Contains(b, wide(args[1])) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(name, bytes.ReplaceAll(b, wide(args[1]), wide(args[2])), 0o666))
}

func flipByte(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flipbyte FILE OFFSET")
	}
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	if at < 0 || at >= len(b) {
		ts.Fatalf("%s", fmt.Sprintf("%s has %d bytes only", args[0], len(b)))
	}
	b[at] ^= 0xff
	ts.Check(os.WriteFile(name, b, 0o666))
}

func unZst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unzst FROM TO")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	z, err := zstd.NewReader(nil)
	ts.Check(err)
	defer z.Close()
	b, err = z.DecodeAll(b, nil)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o666))
}

func gUnzip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gunzip FROM TO")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	z, err := gzip.NewReader(bytes.NewReader(b))
	ts.Check(err)
	b, err = io.ReadAll(z)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o666))
}

func gZip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gzip FROM TO")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	defer f.Close()
	z := gzip.NewWriter(f)
	_, err = z.Write(b)
	ts.Check(err)
	ts.Check(z.Close())
}
