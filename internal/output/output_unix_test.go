//go:build unix

package output

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rename onto /dev/null by root would replace the device for the whole machine.
func TestDevicesAndPipesStayWhatTheyAre(t *testing.T) {
	p := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(p, 0o600))
	got := make(chan string)
	go func() {
		r, err := os.Open(p)
		if err != nil {
			got <- err.Error()
			return
		}
		defer r.Close()
		b, _ := io.ReadAll(r)
		got <- string(b)
	}()
	f, err := Create(p, nil)
	require.NoError(t, err)
	_, err = f.Write([]byte("through the pipe"))
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	assert.Equal(t, "through the pipe", <-got)
	st, err := os.Stat(p)
	require.NoError(t, err)
	assert.NotZero(t, st.Mode()&os.ModeNamedPipe, "it is still a pipe")
}

// What a shell has put into a file before stays there where the file is named as standard output, and a
// file under a name of its own is not written to.
func TestStandardOutputByName(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is behind /dev/fd differs")
	}
	name := filepath.Join(t.TempDir(), "log")
	log, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer log.Close()
	_, err = log.WriteString("before ")
	require.NoError(t, err)
	byName := "/dev/fd/" + strconv.Itoa(int(log.Fd()))
	for _, force := range []bool{false, true} {
		f, err := Create(byName, &Options{Force: force, Stdout: log})
		require.NoError(t, err)
		_, err = f.Write([]byte("output "))
		require.NoError(t, err)
		require.NoError(t, f.Commit())
	}
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "before output output ", string(b))
	_, err = Create(name, &Options{Stdout: log})
	assert.ErrorIs(t, err, ErrExists)
	for _, out := range []string{byName, "-"} { // `tracefix convert IN -o - >> IN`
		_, err = Create(out, &Options{Stdout: log, Inputs: []string{name}})
		assert.ErrorContains(t, err, "is the input as well")
	}
}

// What a session said is its owner's, whoever could read the file that was there before.
func TestPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	name := filepath.Join(t.TempDir(), "a.rec")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o666))
	for _, o := range []*Options{{Force: true, Private: true}, {Force: true}} {
		require.NoError(t, os.Chmod(name, 0o666))
		f, err := Create(name, o)
		require.NoError(t, err)
		st, err := os.Stat(f.temp)
		require.NoError(t, err)
		want := os.FileMode(0o666)
		if o.Private {
			want = 0o600
		}
		assert.Equal(t, want, st.Mode().Perm(), "while it is written")
		require.NoError(t, f.Commit())
		st, err = os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, want, st.Mode().Perm())
	}
}

func TestLinkStaysALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	require.NoError(t, os.Symlink("file", link))
	f, err := Create(link, &Options{Force: true})
	require.NoError(t, err)
	_, err = f.Write([]byte("new"))
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "new", string(b))
	st, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, st.Mode()&os.ModeSymlink)
}

// A link that leads nowhere is no file that could be lost.
func TestLinkToNowhereIsReplaced(t *testing.T) {
	p := filepath.Join(t.TempDir(), "out.json")
	require.NoError(t, os.Symlink("nowhere", p))
	f, err := Create(p, nil)
	require.NoError(t, err)
	_, err = f.Write([]byte("new"))
	require.NoError(t, err)
	require.NoError(t, f.Commit())
	b, err := os.ReadFile(p)
	require.NoError(t, err)
	assert.Equal(t, "new", string(b))
}

// Who may read a file stays who may read it, whatever the umask is; a link's is that of the file it leads to.
func TestReplacedKeepsItsMode(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077} {
		for _, mode := range []os.FileMode{0o600, 0o640, 0o644, 0o664, 0o400} {
			func() {
				defer syscall.Umask(syscall.Umask(mask))
				dir := t.TempDir()
				name := filepath.Join(dir, "a.json")
				link := filepath.Join(dir, "b.json")
				require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
				require.NoError(t, os.Chmod(name, mode))
				require.NoError(t, os.Symlink(name, link))
				for _, to := range []string{name, link} {
					f, err := Create(to, &Options{Force: true})
					require.NoError(t, err)
					st, err := os.Stat(f.temp)
					require.NoError(t, err)
					assert.Equal(t, mode, st.Mode().Perm(), "while it is written")
					require.NoError(t, f.Commit())
					st, err = os.Stat(name)
					require.NoError(t, err)
					assert.Equal(t, mode, st.Mode().Perm(), "umask %o", mask)
				}
				f, err := Create(filepath.Join(dir, "new.json"), &Options{Force: true})
				require.NoError(t, err)
				require.NoError(t, f.Commit())
				st, err := os.Stat(filepath.Join(dir, "new.json"))
				require.NoError(t, err)
				assert.Equal(t, 0o666&^os.FileMode(mask), st.Mode().Perm(), "a new file is the umask's")
			}()
		}
	}
}

// TestFullDiskIsToldOnce: a compressor tells at its end again of what it could not write.
func TestFullDiskIsToldOnce(t *testing.T) {
	for _, name := range []string{"a.json", "a.json.gz", "a.json.zst"} {
		o, err := Create(filepath.Join(t.TempDir(), name), &Options{})
		require.NoError(t, err)
		require.NoError(t, o.f.Close())
		rng := rand.New(rand.NewPCG(1, 2))
		for range 64 {
			b := make([]byte, 128<<10)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if _, err = o.Write(b); err != nil {
				break
			}
		}
		err = o.Finish()
		require.Error(t, err, name)
		assert.Equal(t, 1, strings.Count(err.Error(), "cannot be written"), "%v", err)
		o.Close()
	}
}
