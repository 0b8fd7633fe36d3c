package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "out.json")
	f, err := Create(p, nil)
	require.NoError(t, err)
	_, err = f.Write([]byte("half"))
	require.NoError(t, err)
	_, err = os.Stat(p)
	assert.True(t, os.IsNotExist(err), "not there before Commit")
	require.NoError(t, f.Close())
	left, _ := os.ReadDir(dir)
	assert.Empty(t, left, "nothing is left of what was dropped")

	f, err = Create(p, nil)
	require.NoError(t, err)
	_, err = f.Write([]byte("whole"))
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	require.NoError(t, f.Close())
	b, err := os.ReadFile(p)
	require.NoError(t, err)
	assert.Equal(t, "whole", string(b))
	assert.EqualValues(t, 5, f.Bytes())
	left, _ = os.ReadDir(dir)
	assert.Len(t, left, 1)
}

func TestNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "in.json")
	require.NoError(t, os.WriteFile(p, []byte("old"), 0o644))
	_, err := Create(p, nil)
	assert.ErrorIs(t, err, ErrExists)
	_, err = Create(p, &Options{Force: true, Inputs: []string{p}})
	assert.ErrorContains(t, err, "is the input as well")
	link := filepath.Join(dir, "link.json")
	require.NoError(t, os.Symlink(p, link))
	_, err = Create(link, &Options{Force: true, Inputs: []string{p}})
	assert.ErrorContains(t, err, "is the input as well")
	_, err = Create(filepath.Join(dir, "no", "such"), nil)
	assert.ErrorContains(t, err, "does not exist")
	assert.ErrorContains(t, Check(dir, &Options{Force: true}), "is a folder; name a file in it")
	f, err := Create(p, &Options{Force: true})
	require.NoError(t, err)
	_, err = f.Write([]byte("new"))
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	b, _ := os.ReadFile(p)
	assert.Equal(t, "new", string(b))
}

// A shell hands over the file itself as standard input.
func TestStandardInputIsAnInput(t *testing.T) {
	p := filepath.Join(t.TempDir(), "in.json")
	require.NoError(t, os.WriteFile(p, []byte("old"), 0o644))
	f, err := os.Open(p)
	require.NoError(t, err)
	defer f.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	was := os.Stdin
	defer func() { os.Stdin = was }()
	os.Stdin = f
	assert.ErrorContains(t, Check(p, &Options{Force: true, Inputs: []string{"-"}}), "is the input as well")
	assert.NoError(t, Check(p, &Options{Force: true}))
	os.Stdin = null
	assert.NoError(t, Check(os.DevNull, &Options{Force: true, Inputs: []string{"-"}}))
}

func TestTwoOutputsOfOneRun(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o777))
	require.NoError(t, os.Symlink(sub, filepath.Join(dir, "link")))
	old := filepath.Join(dir, "old.json")
	require.NoError(t, os.WriteFile(old, nil, 0o644))
	require.NoError(t, os.Symlink(old, filepath.Join(dir, "old.link")))
	t.Chdir(dir)
	for _, c := range []struct {
		name, other string
		refused     bool
	}{
		{"new", "new", true},
		{"new", "./new", true},
		{"new", filepath.Join(dir, "new"), true},
		{"sub/new", "link/new", true},
		{"old.json", "old.json", true},
		{"old.json", "old.link", true},
		{"new", "newer", false},
		{"new", "sub/new", false},
		{"old.json", "new", false},
		{"new", "", false},
		{"-", "-", true},
		{"-", "new", false},
		{os.DevNull, os.DevNull, false},
	} {
		err := Check(c.name, &Options{Force: true, Others: []string{c.other}})
		if c.refused {
			assert.ErrorContains(t, err, "two outputs of one run", "%s, %s", c.name, c.other)
		} else {
			assert.NoError(t, err, "%s, %s", c.name, c.other)
		}
	}
}

func TestCompressesByName(t *testing.T) {
	dir := t.TempDir()
	for end, open := range map[string]func(io.Reader) (io.Reader, error){
		".gz":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		".zst": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		p := filepath.Join(dir, "x.json"+end)
		f, err := Create(p, nil)
		require.NoError(t, err)
		want := bytes.Repeat([]byte("abc"), 100000)
		_, err = f.Write(want)
		require.NoError(t, err)
		require.NoError(t, f.Commit())
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		assert.EqualValues(t, len(b), f.Bytes())
		r, err := open(bytes.NewReader(b))
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, got), end)
	}
}

func TestStandardOutput(t *testing.T) {
	var b bytes.Buffer
	f, err := Create("-", &Options{Stdout: &b})
	require.NoError(t, err)
	_, err = f.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	assert.Equal(t, "x", b.String())
}

// What appears under the name while the work goes on belongs to somebody else.
func TestNeverReplacesWhatAppears(t *testing.T) {
	for _, force := range []bool{false, true} {
		dir := t.TempDir()
		p := filepath.Join(dir, "out.json")
		f, err := Create(p, &Options{Force: force})
		require.NoError(t, err)
		_, err = f.Write([]byte("new"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(p, []byte("somebody else's"), 0o666))
		err, want := f.Commit(), "new"
		if force {
			assert.NoError(t, err)
		} else {
			assert.ErrorIs(t, err, ErrExists)
			want = "somebody else's"
		}
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		assert.Equal(t, want, string(b))
		left, _ := os.ReadDir(dir)
		assert.Len(t, left, 1)
	}
}

// The system's error of a full disk has the temporary name, which tells nobody anything.
func TestFailedWriteNamesTheOutput(t *testing.T) {
	for _, name := range []string{"out.json", "out.json.gz", "out.json.zst"} {
		p := filepath.Join(t.TempDir(), name)
		f, err := Create(p, nil)
		require.NoError(t, err)
		require.NoError(t, f.f.Close()) // all writing fails from now on
		_, err = f.Write([]byte("more than nothing"))
		require.NoError(t, err, "it is buffered")
		err = f.Commit()
		var place *PlaceError
		require.ErrorAs(t, err, &place)
		assert.Equal(t, p, place.Name)
		assert.ErrorIs(t, err, os.ErrClosed)
		assert.NotContains(t, err.Error(), ".tracefix-")
	}
}

// What can be done depends on what the system says.
func TestAdvice(t *testing.T) {
	for err, want := range map[error]string{
		&os.PathError{Op: "write", Path: "/x/.a.tracefix-1", Err: syscall.ENOSPC}:      "a.json: cannot be written: " + syscall.ENOSPC.Error() + "; free space there, or name another place",
		&os.PathError{Op: "open", Path: "/x/.a.tracefix-1", Err: syscall.ENAMETOOLONG}: "a.json: cannot be written: " + syscall.ENAMETOOLONG.Error() + "; give it a shorter name",
		&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}:            "a.json: cannot be written: " + syscall.EPIPE.Error() + "; who reads it has ended: have it read to the end",
		&os.PathError{Op: "open", Path: "/x/.a.tracefix-1", Err: syscall.EACCES}:       "a.json: cannot be written: " + syscall.EACCES.Error() + "; name a place that can be, or change its permissions",
	} {
		assert.EqualError(t, placeError("a.json", err), want)
	}
	full := InTemp(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	assert.ErrorContains(t, full, "free space there, or set TMP")
	assert.ErrorContains(t, full, os.TempDir())
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	for _, make := range []func() error{
		func() error { _, err := TempFile("", "x-"); return err },
		func() error { _, err := TempDir("x-"); return err },
	} {
		assert.ErrorContains(t, make(), "missing, the folder for temporary files, cannot be written to: ")
		assert.ErrorIs(t, make(), os.ErrNotExist)
	}
}

// TestSameBytes holds that an output does not depend on the number of processors, and that no
// goroutine outlives it.
func TestSameBytes(t *testing.T) {
	for _, ext := range []string{"", ".gz", ".zst"} {
		var want []byte
		for _, n := range []int{1, 2, 3} {
			before := runtime.NumGoroutine()
			got := func() []byte {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
				name := filepath.Join(t.TempDir(), "a.json"+ext)
				f, err := Create(name, nil)
				require.NoError(t, err)
				for i := range 400_000 {
					_, err := fmt.Fprintf(f, "line %d of %x\n", i, i*i)
					require.NoError(t, err)
				}
				require.NoError(t, f.Commit())
				b, err := os.ReadFile(name)
				require.NoError(t, err)
				assert.EqualValues(t, len(b), f.Bytes())
				return b
			}()
			if want == nil {
				want = got
			}
			assert.True(t, bytes.Equal(want, got), "%q with %d processors", ext, n)
			for i := 0; i < 1000 && runtime.NumGoroutine() > before; i++ {
				time.Sleep(time.Millisecond)
			}
			assert.LessOrEqual(t, runtime.NumGoroutine(), before)
		}
	}
}

func TestDeviceOnWindows(t *testing.T) {
	for name, want := range map[string]bool{
		"con": true, "AUX.json": true, "com1.speedscope.json": true, "LPT0": true, "prn .x": true, "NUL": true,
		"console": false, "com": false, "com10.json": false, "x.aux": false, "": false, ".aux": false,
	} {
		assert.Equal(t, want, DeviceOnWindows(name), name)
	}
}

// The name of a temporary file is text where that of the output is, however long.
func TestBesideIsText(t *testing.T) {
	for n := range 4 {
		name := strings.Repeat("a", n) + strings.Repeat("日", 90)
		assert.True(t, utf8.ValidString(beside(name)), n)
		assert.LessOrEqual(t, len(beside(name)), longestBeside)
		assert.True(t, IsTemporary("."+beside(name)+".tracefix-01234567", name))
	}
	assert.GreaterOrEqual(t, len(beside(strings.Repeat("\x80", 300))), longestBeside-utf8.UTFMax)
}
