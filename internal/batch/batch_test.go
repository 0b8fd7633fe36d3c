package batch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/tracetest"
)

// trace is the smallest trace: what stands in it tells the fake what to do.
func trace(word string) string { return `{"traceEvents":[{"ph":"i","name":"` + word + `"}]}` }

// fake is a Work: its output is the input behind a line with its length. Words in the
// input make it fail, panic, or tell of damage and cuts.
func fake(ctx context.Context, in *input.File, job Job) (*report.Trace, error) {
	rep := &report.Trace{Command: "repair", Status: OK, Input: report.Input{Name: in.Name, Format: in.Kind.String(), Bytes: in.Stored, Layers: in.Layers}}
	fail := func(err error) (*report.Trace, error) {
		rep.Status, rep.Error = Failed, err.Error()
		return rep, err
	}
	if in.Kind == input.Unknown {
		return fail(fmt.Errorf("%s: offset 0: %s", in.Name, input.Describe(in.Head())))
	}
	r, err := in.Reader()
	if err != nil {
		return fail(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		if len(b) == 0 || errors.Is(err, input.ErrTooLarge) {
			return fail(err)
		}
		rep.AddDamage(report.Damage{Offset: int64(len(b)), Where: "gzip", What: err.Error()})
	}
	switch {
	case bytes.Contains(b, []byte("FAIL")):
		return fail(fmt.Errorf("%s: offset 17: it failed", in.Name))
	case bytes.Contains(b, []byte("PANIC")):
		panic("asked to")
	case bytes.Contains(b, []byte("SLOW")):
		time.Sleep(20 * time.Millisecond)
	case bytes.Contains(b, []byte("HURT")):
		for i := range 30 {
			rep.AddDamage(report.Damage{Offset: int64(i), Where: "block", What: "is \x01 broken"})
		}
	case bytes.Contains(b, []byte("CUT")):
		rep.Samples, rep.Cut, rep.Repaired = 10, 2, map[string]int{"before": 1, "bridge": 1}
	}
	f, err := output.Create(job.Out, &output.Options{Force: job.Force})
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%d\n", len(b))
	for i := range b { // slowly, so that a kill can come in between
		if _, err := f.Write(b[i : i+1]); err != nil {
			return fail(err)
		}
	}
	if err := f.Commit(); err != nil {
		return fail(err)
	}
	rep.Output = &report.Output{Name: job.Out, Format: "chromium", Bytes: f.Bytes()}
	return rep, nil
}

// put writes files; a name ending in / is a folder, content beginning with -> a link.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	var names []string
	for n := range files {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		p := filepath.Join(dir, filepath.FromSlash(n))
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o777))
		if to, ok := strings.CutPrefix(files[n], "->"); ok {
			require.NoError(t, os.Symlink(to, p))
			continue
		}
		require.NoError(t, os.WriteFile(p, []byte(files[n]), 0o666))
	}
}

// tree reads a folder back, without what the batch keeps for itself.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, _ := filepath.Rel(dir, p)
		if d.IsDir() {
			if d.Name() == stateDir {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasPrefix(rel, reportName) && !strings.Contains(rel, "~") {
			return nil
		}
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		out[filepath.ToSlash(rel)] = string(b)
		return nil
	})
	require.NoError(t, err)
	return out
}

func names(m map[string]string) []string {
	out := []string{}
	for n := range m {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func run(t *testing.T, c Config) *Report {
	t.Helper()
	if c.Work == nil {
		c.Work = fake
	}
	if c.Do == "" {
		c.Do = DoRepair
	}
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	return r
}

func outcomes(r *Report) map[string]string {
	m := map[string]string{}
	for _, t := range r.Traces {
		m[t.Input.Name] = t.Status
	}
	for _, s := range r.Skipped {
		m[s.Name] = s.Reason
	}
	return m
}

type member struct {
	name, content string
	link          string
	kind          byte
}

func tarball(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.content)), Typeflag: tar.TypeReg}
		if m.kind != 0 {
			h.Typeflag = m.kind
		}
		if m.link != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, m.link, 0
		}
		require.NoError(t, w.WriteHeader(h))
		if h.Size > 0 {
			_, err := w.Write([]byte(m.content))
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func zipball(t *testing.T, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(0o644)
		if m.link != "" {
			h.SetMode(os.ModeSymlink | 0o777)
			m.content = m.link
		}
		f, err := w.CreateHeader(h)
		require.NoError(t, err)
		_, err = f.Write([]byte(m.content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func gz(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func zst(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll(b, nil)
}

// TestForeignFilesAreSkipped: what other tools wrote is named and fails no run.
func TestForeignFilesAreSkipped(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{
		"a.json":           trace("a"),
		"firefox.json":     `{"meta":{"interval":1,"preprocessedProfileVersion":48},"threads":[]}`,
		"v8.cpuprofile":    `{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}]}`,
		"perf.nettrace":    "PERFILE2" + strings.Repeat("\x00", 100),
		"visual.nettrace":  "\xfd7zXZ\x00abc",
		"s.diagsession":    string(zipball(t, member{name: "metadata.xml", content: "<Package/>"}, member{name: "x/y.etl", content: "no"})),
		"dump.gcdump":      "\x14\x00\x00\x00!FastSerialization.1\x0c\x00\x00\x00GCHeapDump",
		"perfetto.pftrace": "\x0a\x90\x02\x08abcdefgh",
	})
	r := run(t, Config{Paths: []string{in}, Out: out})
	assert.Equal(t, 1, r.Totals.OK)
	assert.Zero(t, r.Totals.Failed)
	assert.Equal(t, AllGood, r.Verdict())
	named := 0
	for why, n := range r.Reasons {
		if strings.HasPrefix(why, skipForeign) {
			named += n
		}
	}
	assert.Equal(t, 7, named, r.Reasons)
	assert.Equal(t, 1, r.Reasons[skipForeign+input.Diagsession], "and not its members")
	assert.Zero(t, r.Reasons[skipNoTrace])
}

// TestMetadataBesideTraces: a zip that holds a metadata.xml of somebody else beside its traces is read.
func TestMetadataBesideTraces(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"s.zip": string(zipball(t, member{name: "metadata.xml", content: "<x/>"}, member{name: "a.json", content: trace("a")}))})
	r := run(t, Config{Paths: []string{in}, Out: out})
	assert.Equal(t, 1, r.Totals.OK)
	assert.Equal(t, map[string]int{skipNoTrace: 1}, r.Reasons)
}

func TestOutputsMirrorTheInputs(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	inner := tarball(t, member{name: "deep.json", content: trace("deep")})
	put(t, in, map[string]string{
		"a.json":             trace("a"),
		"sub/b.json.gz":      string(gz(t, []byte(trace("b")))),
		"sub/c.nettrace":     "Nettrace and so on",
		"sub/README.md":      "# no trace",
		"sub/package.json":   `{"name":"no trace"}`,
		"sub/log.ndjson":     "{\"a\":1}\n{\"a\":2}\n",
		".git/x.json":        trace("hidden"),
		"one.zip":            string(zipball(t, member{name: "x/y.json", content: trace("z")}, member{name: "n.txt", content: "no"})),
		"two.tar":            string(tarball(t, member{name: "t.json", content: trace("t")}, member{name: "t2.json.zst", content: string(zst(t, []byte(trace("t2"))))})),
		"three.tar.gz":       string(gz(t, tarball(t, member{name: "./u.json", content: trace("u")}))),
		"four.tar.zst":       string(zst(t, tarball(t, member{name: "v.json", content: trace("v")}, member{name: "in.tar", content: string(inner)}))),
		"misnamed.bin":       string(zipball(t, member{name: "w.json", content: trace("w")}, member{name: "in.tar.gz", content: string(gz(t, inner))})),
		"old.netperf":        "\x14\x00\x00\x00!FastSerialization.1",
		"packed.json.bz2.gz": string(gz(t, []byte(trace("p")))),
	})
	r := run(t, Config{Paths: []string{in}, Out: out})
	got := tree(t, out)
	assert.Equal(t, []string{
		"a.json", "four.tar.zst/in.tar/deep.json", "four.tar.zst/v.json",
		"misnamed.bin/in.tar.gz/deep.json", "misnamed.bin/w.json", "old.nettrace", "one.zip/x/y.json",
		"packed.json.bz2.gz", "sub/b.json.gz", "sub/c.nettrace", "three.tar.gz/u.json", "two.tar/t.json", "two.tar/t2.json.zst",
	}, names(got))
	assert.Equal(t, fmt.Sprintf("%d\n%s", len(trace("a")), trace("a")), got["a.json"])
	assert.Equal(t, fmt.Sprintf("%d\n%s", len(trace("u")), trace("u")), got["three.tar.gz/u.json"])
	assert.Equal(t, 13, r.Totals.OK)
	assert.Zero(t, r.Totals.Failed)
	assert.Equal(t, map[string]int{skipHidden: 1, skipNoTrace: 2, skipJSON: 2}, r.Reasons)
	assert.Equal(t, AllGood, r.Verdict())
	left, err := os.ReadDir(filepath.Join(out, stateDir))
	require.NoError(t, err)
	assert.Len(t, left, 1, "only the journal stays")
	for _, e := range reportEnds {
		assert.FileExists(t, filepath.Join(out, reportName+e))
	}
}

func TestArgumentsAndGlobs(t *testing.T) {
	in := t.TempDir()
	put(t, in, map[string]string{
		"x/a.json": trace("1"), "x/deep/a.json": trace("2"), "y/a.json": trace("3"), "y/b.JSON": trace("4"),
		"z.zip": string(zipball(t, member{name: "a.json", content: trace("5")})),
	})
	for _, c := range []struct {
		name  string
		paths []string
		stdin string
		want  []string
	}{
		{"a file", []string{"x/a.json"}, "", []string{"a.json"}},
		{"a folder", []string{"x"}, "", []string{"a.json", "deep/a.json"}},
		{"an archive", []string{"z.zip"}, "", []string{"a.json"}},
		{"several keep their names", []string{"x", "y", "z.zip"}, "", []string{"x/a.json", "x/deep/a.json", "y/a.json", "y/b.JSON", "z.zip/a.json"}},
		{"files of one name", []string{"x/a.json", "y/a.json"}, "", []string{"a.json", "a~2.json"}},
		{"a glob mirrors below its fixed part", []string{"*/a.json"}, "", []string{"x/a.json", "y/a.json"}},
		{"a glob over folders", []string{"**/a.json"}, "", []string{"x/a.json", "x/deep/a.json", "y/a.json"}},
		{"a glob that matches a folder takes all in it", []string{"[x]"}, "", []string{"x/a.json", "x/deep/a.json"}},
		{"a list keeps paths", []string{"-"}, "x/deep/a.json\ny/a.json\r\n./z.zip\n", []string{"x/deep/a.json", "y/a.json", "z.zip/a.json"}},
		{"a list with zeros", []string{"-"}, "x/a.json\x00y/a.json\x00", []string{"x/a.json", "y/a.json"}},
		{"a file is done once", []string{"x/a.json", "./x/../x/a.json", "x/*.json", "x", "*"}, "", []string{"a.json", "x/deep/a.json", "y/a.json", "y/b.JSON", "z.zip/a.json"}},
		{"a list names a file twice", []string{"-"}, "y/a.json\ny/a.json\ny\n", []string{"y/a.json", "y/b.JSON"}},
		{"a list leads nowhere else", []string{"-"}, "x/../../" + filepath.Base(in) + "/y/a.json\n", []string{filepath.Base(in) + "/y/a.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(in)
			out := t.TempDir()
			r := run(t, Config{Paths: c.paths, Out: out, Stdin: strings.NewReader(c.stdin)})
			assert.Equal(t, c.want, names(tree(t, out)))
			assert.Zero(t, r.Totals.Failed)
		})
	}
	t.Chdir(in)
	r := run(t, Config{Paths: []string{"nothing*", "missing", "x"}, Out: t.TempDir()})
	assert.Equal(t, 2, r.Totals.Failed, "what is not there fails, the rest goes on")
	assert.Equal(t, 2, r.Totals.OK)
}

// What stands on standard input in place of a list would be read as names: a piece of it may be "/".
// A list that begins with a byte order mark has no name that does, unless there is a file of that name.
func TestListWithAByteOrderMark(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", map[string]string{"a.json": trace("a"), "b.json": trace("b"), "\ufeffa.json": trace("mark")})
	for _, want := range []map[string]string{{"\ufeffa.json": OK, "b.json": OK}, {"a.json": OK, "b.json": OK}} {
		r := run(t, Config{Paths: []string{"-"}, Out: t.TempDir(), Stdin: strings.NewReader("\ufeffa.json\r\nb.json\r\n")})
		assert.Equal(t, want, outcomes(r))
		_ = os.Remove("\ufeffa.json")
	}
}

func TestNoList(t *testing.T) {
	in := t.TempDir()
	put(t, in, map[string]string{"a.json": trace("a"), "b.json": trace("b"), "[x].json": trace("x")})
	t.Chdir(in)
	packed, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	tar := tarball(t, member{name: "a.json", content: trace("m")}) // begins with a name that there is
	for _, c := range []struct {
		what, list, refused string
	}{
		{"nettrace", "Nettrace\x14\x00\x00\x00!FastSerialization.1\x00/\x00", "a trace (nettrace)"},
		{"netperf", "\x14\x00\x00\x00!FastSerialization.1\x00", "a trace (netperf)"},
		{"gzip", string(gz(t, []byte(trace("m")))), "a compressed file (gzip)"},
		{"zstd", string(packed.EncodeAll([]byte(trace("m")), nil)), "a compressed file (zstd)"},
		{"zip", "PK\x03\x04\x00\x00/\x00", "a zip archive"},
		{"tar", string(tar), "a tar archive"},
		{"tar in gzip", string(gz(t, tar)), "a tar archive"},
		{"chromium", trace("m"), "a trace (chromium)"},
		{"chromium array", "\n [\n{\"ph\":\"i\"}]", "a trace (chromium)"},
		{"elf", "\x7fELF\x02\x01\x00/\x00", "an ELF file"},
		{"binary", "abc\x00\x00\x00/\x00", "binary data"},
		{"binary", "\x01abc", "binary data"},
		{"utf-16", "\xff\xfea\x00.\x00", "UTF-16"},
		{"lines", "a.json\nb.json\n", ""},
		{"lines of Windows", "a.json\r\nb.json\r\n", ""},
		{"find -print0", "a.json\x00b.json\x00", ""},
		{"a bracket", "[x].json\na.json\n", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			b := Config{Paths: []string{"-"}, Out: out, Do: DoRepair, Work: fake, Stdin: strings.NewReader(c.list)}
			r, err := Run(t.Context(), b)
			if c.refused == "" {
				require.NoError(t, err)
				assert.Equal(t, 2, r.Totals.OK)
				return
			}
			require.ErrorAs(t, err, &report.UsageError{})
			assert.ErrorContains(t, err, c.refused)
			assert.NoDirExists(t, out, "nothing is made for it")
			b.Stdin = strings.NewReader(c.list)
			_, err = MakePlan(t.Context(), b, 0)
			assert.ErrorContains(t, err, c.refused)
		})
	}
	_, err = Run(t.Context(), Config{Paths: []string{"-"}, Out: t.TempDir(), Do: DoRepair, Work: fake, Stdin: strings.NewReader("[not there].json\n")})
	assert.NoError(t, err, "a name with a bracket fails as a name")
}

func TestOneBadTraceNeverStopsTheRest(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{
		"1.json": trace("FAIL"), "2.json": trace("PANIC"), "3.json": trace("HURT"), "4.json": trace("fine"),
		"5.json": "", "6.nettrace": "\x00\x00\x00", "7.zip": "PK\x03\x04 and nothing", "8.tar.gz": string(gz(t, tarball(t, member{name: "m.json", content: trace("m")}))[:60]),
		"9.json.gz": string(gz(t, []byte(trace(strings.Repeat("x", 5000)))))[:40], "A.json": `{"cut off`,
	})
	r := run(t, Config{Paths: []string{in}, Out: out})
	got := outcomes(r)
	for name, want := range map[string]string{
		"1.json": Failed, "2.json": Failed, "3.json": Damaged, "4.json": OK, "5.json": Failed, "6.nettrace": Failed,
		"7.zip": Failed, "A.json": OK,
	} {
		assert.Equal(t, want, got[filepath.Join(in, name)], name)
	}
	assert.NotEqual(t, OK, got[filepath.Join(in, "8.tar.gz")], "a broken archive is never silent")
	assert.Equal(t, SomeFailed, r.Verdict())
	for _, x := range r.Traces {
		assert.LessOrEqual(t, len(x.Damage), maxDamages)
		if x.Status == Failed {
			assert.NotEmpty(t, x.Error)
			assert.Nil(t, x.Output)
		}
	}
	assert.Equal(t, 30, r.Traces[2].Damages)
}

// TestMemberOfABrokenArchiveIsSaved: an archive that breaks off costs what is not there,
// and the member that it breaks off in tells so. Only where no member can, the archive
// counts as one more trace.
func TestMemberOfABrokenArchiveIsSaved(t *testing.T) {
	long := `[{"ph":"i","name":"` + strings.Repeat("long ", 2000) + `"}]`
	members := []member{{name: "1.json", content: trace("1")}, {name: "2.json", content: long}, {name: "3.json", content: trace("3")}}
	tar, zip := tarball(t, members...), zipball(t, members...)
	noise := make([]byte, 1<<16)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte('a' + rng.IntN(26))
	}
	tgz := gz(t, tarball(t, members[0], member{name: "2.json", content: `[{"ph":"i","name":"` + string(noise) + `"}]`}))
	zipIn := tarball(t, member{name: "in.zip", content: string(zip)})
	tgzIn := gz(t, zipIn[:512+len(zip)])
	badSum := zipball(t, member{name: "in.zip", content: string(zip)})
	directory := bytes.LastIndex(badSum, []byte("PK\x01\x02"))
	for _, at := range []int{14, directory + 16} { // the checksum of the only member
		badSum[at] ^= 1
	}
	for _, c := range []struct {
		name    string
		content []byte
		want    []string // of each trace
		saved   []string
	}{
		{"cut.tar", tar[:4096], []string{OK, Damaged}, []string{"1.json", "2.json"}},
		{"header.tar", tar[:1024+100], []string{OK, Failed}, []string{"1.json"}},
		{"cut.tgz", tgz[:len(tgz)/2], []string{OK, Damaged}, []string{"1.json", "2.json"}},
		{"cut.zip", zip[:bytes.Index(zip, []byte("2.json"))+50], []string{Damaged, Damaged}, []string{"1.json", "2.json"}},
		{"nodirectory.zip", zip[:len(zip)-30], []string{Damaged, Damaged, Damaged}, []string{"1.json", "2.json", "3.json"}},
		{"header.zip", zip[:20], []string{Failed}, []string{}},
		{"zipin.tar", zipIn[:512+bytes.Index(zip, []byte("2.json"))+50], []string{Damaged, Damaged}, []string{"in.zip/1.json", "in.zip/2.json"}},
		{"zipin.tgz", tgzIn[:len(tgzIn)-40], []string{Damaged, Damaged, Damaged}, []string{"in.zip/1.json", "in.zip/2.json", "in.zip/3.json"}},
		{"zipin.zip", badSum, []string{OK, OK, OK, Failed}, []string{"in.zip/1.json", "in.zip/2.json", "in.zip/3.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, out := t.TempDir(), t.TempDir()
			put(t, in, map[string]string{c.name: string(c.content)})
			r := run(t, Config{Paths: []string{filepath.Join(in, c.name)}, Out: out})
			var got []string
			for _, x := range r.Traces {
				got = append(got, x.Status)
				assert.True(t, x.Status == OK || x.Error != "" || x.Damages > 0, "it says why")
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.saved, names(tree(t, out)))
			// Shards see the same list, whoever has the member that is cut.
			n := 0
			for i := range 3 {
				s := run(t, Config{Paths: []string{filepath.Join(in, c.name)}, Out: t.TempDir(), Shard: Shard{Index: i + 1, Count: 3}})
				assert.Equal(t, r.List.Digest, s.List.Digest)
				n += len(s.Traces)
			}
			assert.Equal(t, len(c.want), n)
		})
	}
}

// An archive that cannot be recognized as one is no file that just lies there: its traces would be
// lost without a word.
func TestArchivesThatAreNoneFail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	members := []member{{name: "1.json", content: trace(letters(rng, 2000))}, {name: "2.json", content: trace("2")}}
	tar, zip := tarball(t, members...), zipball(t, members...)
	tgz, tzst := gz(t, tar), zst(t, tar)
	flipped := bytes.Clone(tzst) // cannot be unpacked, and the checksum tells which bit it is
	d, err := zstd.NewReader(nil, zstd.IgnoreChecksum(true))
	require.NoError(t, err)
	defer d.Close()
	for i := len(flipped) - 5; err == nil; i-- {
		flipped[i] ^= 1
		if _, err = d.DecodeAll(flipped, nil); err == nil {
			flipped[i] ^= 1
		}
	}
	hit := func(b []byte, at ...int) string {
		b = bytes.Clone(b)
		for _, i := range at {
			b[i] ^= 0xff
		}
		return string(b)
	}
	in, out := t.TempDir(), t.TempDir()
	want := map[string]string{}
	files := map[string]string{}
	for _, c := range []struct{ name, content, want string }{
		{"empty.zip", "", "the file is empty, and no zip as its name says; copy it again"},
		{"empty.tar.gz", "", "the file is empty, and no tar as its name says; copy it again"},
		{"cut.zip", string(zip[:3]), `offset 0: expected a zip as the file's name says, found "PK\x03"; copy it again`},
		{"zeros.zip", strings.Repeat("\x00", 2000), "expected a zip"},
		{"cut.tar", string(tar[:100]), "expected a tar"},
		{"cut.tgz", string(tgz[:20]), "gzip: expected more compressed data"},
		{"cut.tar.zst", string(tzst[:30]), "zstd: expected more compressed data"},
		{"magic.tar.gz", hit(tgz, 0, 1), "expected a tar"},
		{"sum.tar.zst", hit(tzst, len(tzst)-1), "tar: stored byte "},
		{"put right.tar.zst", string(flipped), "a tar inside zstd that cannot be unpacked as it is; copy it again, or unpack it with another program"},
		{"checksum.tar", hit(tar, 3), "offset 0: expected the header of a tar's first member, found one with a wrong checksum; copy the archive again"},
		{"no name that says so", hit(tar, 3), "a wrong checksum"},
	} {
		files[c.name], want[filepath.Join(in, c.name)] = c.content, c.want
	}
	put(t, in, files)
	r := run(t, Config{Paths: []string{in}, Out: out})
	require.Len(t, r.Traces, len(want))
	for _, x := range r.Traces {
		assert.Equal(t, Failed, x.Status)
		assert.Contains(t, x.Error, want[x.Input.Name], x.Input.Name)
	}

	// What is none of that stays what it was.
	in, out = t.TempDir(), t.TempDir()
	put(t, in, map[string]string{
		"empty.tar": string(tarball(t)), "empty.tar.gz": string(gz(t, tarball(t))), "empty2.zip": string(zipball(t)), "log.gz": string(gz(t, []byte("a log"))[:12]),
		"visual.tar.xz": "\xfd7zXZ\x00abc", "x.zip": trace("not a zip"), "7.zip": "7z\xbc\xaf\x27\x1c",
	})
	r = run(t, Config{Paths: []string{in}, Out: out})
	assert.Equal(t, map[string]int{skipNoTrace: 3, skipForeign + "a 7z archive; unpack it first": 1, skipForeign + "xz; unpack it with `xz -d` first": 1}, r.Reasons)
	assert.Equal(t, 1, r.Totals.OK)
	assert.Zero(t, r.Totals.Failed)
}

// Errors of members and of whole zips say once that they are of a zip, and what to do.
func TestErrorsOfZips(t *testing.T) {
	var streamed bytes.Buffer // sizes stand behind the data
	w := zip.NewWriter(&streamed)
	for _, name := range []string{"1.json", "2.json"} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		require.NoError(t, err)
		_, err = f.Write([]byte(trace(name)))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	z := zipball(t, member{name: "1.json", content: trace("1")}, member{name: "2.json", content: trace("2")})
	method := bytes.Clone(z)
	method[bytes.LastIndex(z, []byte("PK\x01\x02"))+10] = 99
	header := bytes.Clone(z)
	header[bytes.LastIndex(z, []byte("PK\x03\x04"))] ^= 1
	for _, c := range []struct {
		name string
		zip  []byte
		want string
	}{
		{"method.zip", method, "zip: compression method 99 is not read; unpack it with another program first"},
		{"header.zip", header, "zip: the member's own header is broken; copy the archive again"},
		{"streamed.zip", streamed.Bytes()[:streamed.Len()-30], `zip: "1.json": its size is not known without the zip's directory; copy the archive again`},
		{"cut.zip", z[:20], "zip: not a valid zip file: the directory at its end is missing or broken, and no member could be read without it; copy it again"},
	} {
		in := t.TempDir()
		put(t, in, map[string]string{c.name: string(c.zip)})
		var failed []string
		for _, x := range run(t, Config{Paths: []string{in}, Out: t.TempDir()}).Traces {
			if x.Status == Failed {
				failed = append(failed, x.Error)
			}
		}
		assert.Contains(t, failed, c.want, c.name)
	}
}

// What a compression tells behind the end of a tar is asked for: wrong bytes that came out of it look like right ones.
func TestChecksumsAroundTars(t *testing.T) {
	whole := tarball(t, member{name: "1.json", content: trace("1")}, member{name: "2.json", content: trace("2")})
	wrong := func(b []byte, fromEnd int) []byte {
		b = bytes.Clone(b)
		b[len(b)-fromEnd] ^= 1
		return b
	}
	tgz, tzst := gz(t, whole), zst(t, whole)
	// Of the frame that a wrong checksum ends zstd gives no block that it has not given yet.
	large := wrong(zst(t, append(bytes.Clone(whole), make([]byte, 1<<20)...)), 1)
	inZip := zipball(t, member{name: "in.tar", content: string(whole)})
	for _, at := range []int{14, bytes.LastIndex(inZip, []byte("PK\x01\x02")) + 16} { // the checksum of the only member
		inZip[at] ^= 1
	}
	for name, c := range map[string]struct {
		content []byte
		want    string // "": nothing is wrong
	}{
		"a.tar.gz":  {wrong(tgz, 8), "tar: behind its last member: gzip: invalid checksum (2 members were read, and may not be what was packed; copy the archive again)"},
		"b.tar.zst": {wrong(append(bytes.Clone(tzst), tzst...), 1), "tar: behind its last member: "},
		"c.zip":     {inZip, "tar: behind its last member: "},
		"d.tar.gz":  {tgz[:len(tgz)-4], "tar: behind its last member: unexpected EOF"},
		"e.tar.gz":  {append(bytes.Clone(tgz), make([]byte, 512)...), ""},
		"f.tar.zst": {append(bytes.Clone(tzst), "something else"...), ""},
		"h.tar.zst": {large, "CRC"},
	} {
		in := t.TempDir()
		put(t, in, map[string]string{name: string(c.content)})
		ok, failed := okAndFailed(t, in)
		assert.Equal(t, []string{"1.json", "2.json"}, ok, name)
		if c.want == "" {
			assert.Empty(t, failed, name)
			continue
		}
		require.Len(t, failed, 1, name)
		assert.Contains(t, failed[0], c.want, name)
	}
}

// okAndFailed runs a batch over a folder, and returns the names of traces that are OK and the errors of the others.
func okAndFailed(t *testing.T, in string) (ok, failed []string) {
	t.Helper()
	for _, x := range run(t, Config{Paths: []string{in}, Out: t.TempDir()}).Traces {
		if x.Status == OK {
			ok = append(ok, filepath.Base(x.Input.Name))
		} else {
			failed = append(failed, x.Error)
		}
	}
	return ok, failed
}

// Without the mark that ends it a tar may have held more; behind the mark another tar may follow.
func TestEndsOfTars(t *testing.T) {
	whole := tarball(t, member{name: "1.json", content: trace("1")}, member{name: "2.json", content: trace("2")})
	require.Len(t, whole, 6*512)
	const missing = "the mark that ends a tar is missing, and members may be missing with it; copy the archive again (2 members before it were read)"
	one, both := []string{"1.json", "2.json"}, []string{"1.json", "2.json", "1.json", "2.json"}
	twice := slices.Concat(whole, make([]byte, 3*512), whole) // cat a.tar b.tar
	for name, c := range map[string]struct {
		content []byte
		want    []string
		failed  string
	}{
		"a.tar":    {whole[:4*512], one, missing},
		"b.tar":    {whole[:4*512-3], one, missing}, // in what fills the block
		"c.tar.gz": {gz(t, whole[:4*512]), one, missing},
		"d.tar":    {whole[:5*512], one, ""},
		"e.tar":    {twice, both, ""},
		"f.tar.gz": {gz(t, twice), both, ""},
		"g.tar.gz": {append(gz(t, whole), gz(t, whole)...), both, ""},
		"h.tar":    {append(bytes.Clone(whole), "something else"...), one, ""},
		"i.tar":    {append(bytes.Clone(whole), bytes.Repeat([]byte("else"), 512)...), one, ""},
		"j.tar":    {slices.Concat(whole, bytes.Repeat([]byte("lost"), 512), whole), both, "tar: stored byte 3584: archive/tar: invalid tar header"},
	} {
		in := t.TempDir()
		put(t, in, map[string]string{name: string(c.content)})
		ok, failed := okAndFailed(t, in)
		assert.Equal(t, c.want, ok, name)
		if c.failed == "" {
			assert.Empty(t, failed, name)
			continue
		}
		require.Len(t, failed, 1, name)
		assert.Contains(t, failed[0], c.failed, name)
	}
}

// Nothing of a block of bzip2 is read before all of it, so that as much is looked at as may hold one.
func TestHeadOfBzip2(t *testing.T) {
	b := append([]byte("BZh9"), make([]byte, 2<<20)...)
	again, head := bufferedHead(bytes.NewReader(b))
	assert.Len(t, head, headSizeBzip2)
	all, err := io.ReadAll(again)
	require.NoError(t, err)
	assert.Equal(t, b, all)
	head, err = readHead(bytes.NewReader(b))
	require.NoError(t, err)
	assert.Len(t, head, headSizeBzip2)
}

// A header that is broken costs its member and none behind it, also where the data between look like the end of a tar.
func TestTarWithABrokenHeader(t *testing.T) {
	zeros := trace("2") + strings.Repeat("\x00", 4096) + "}"
	whole := tarball(t, member{name: "1.json", content: trace("1")}, member{name: "2.json", content: zeros}, member{name: "3.json", content: trace("3")}, member{name: "4.json", content: trace("4")})
	header := func(name string) int { return bytes.Index(whole, append([]byte(name), 0)) }
	second := bytes.Clone(whole)
	second[header("2.json")] ^= 1
	two := bytes.Clone(second)
	two[header("4.json")+150] ^= 1 // its sum
	for name, c := range map[string]struct {
		tar  []byte
		want []string
		at   string
	}{
		"a.tar":    {second, []string{"1.json", "3.json", "4.json"}, "tar: stored byte 1536: archive/tar: invalid tar header (1 members before it were read, and those behind the next whole header)"},
		"b.tar.gz": {gz(t, second), []string{"1.json", "3.json", "4.json"}, "archive/tar: invalid tar header (1 members before it were read, and those behind the next whole header)"},
		"c.tar":    {two, []string{"1.json", "3.json"}, "tar: stored byte 1536: "},
		"d.tar":    {two[:len(two)-2*1024+100], []string{"1.json", "3.json"}, "tar: stored byte 1536: "},
		"e.tar":    {tarball(t, member{name: "in.tar", content: string(second)}, member{name: "5.json", content: trace("5")}), []string{"in.tar/1.json", "in.tar/3.json", "in.tar/4.json", "5.json"}, "archive/tar: invalid tar header"},
	} {
		in := t.TempDir()
		put(t, in, map[string]string{name: string(c.tar)})
		var got, failed []string
		for _, x := range run(t, Config{Paths: []string{in}, Out: t.TempDir()}).Traces {
			if x.Status == Failed {
				failed = append(failed, x.Error)
				continue
			}
			got = append(got, filepath.ToSlash(strings.TrimPrefix(x.Input.Name, filepath.Join(in, name)+string(filepath.Separator))))
		}
		assert.ElementsMatch(t, c.want, got, name)
		require.Len(t, failed, 1, name)
		assert.Contains(t, failed[0], c.at, name)
	}
}

// A zip is one also where its first header is broken, or a program stands before it.
func TestZipWithoutItsHead(t *testing.T) {
	z := zipball(t, member{name: "1.json", content: trace("1")}, member{name: "2.json", content: trace("2")})
	broken := bytes.Clone(z)
	broken[0] ^= 1
	one := zipball(t, member{name: "1.json", content: trace("1")})
	one[0] ^= 1
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"broken.zip": string(broken), "one.zip": string(one), "self.zip": "#!/bin/sh\n" + string(z)})
	got := outcomes(run(t, Config{Paths: []string{in}, Out: out}))
	assert.Equal(t, map[string]string{
		filepath.Join(in, "broken.zip", "1.json"): Failed, filepath.Join(in, "broken.zip", "2.json"): OK,
		filepath.Join(in, "one.zip"):            Damaged, // one member is put right where it is opened
		filepath.Join(in, "self.zip", "1.json"): OK, filepath.Join(in, "self.zip", "2.json"): OK,
	}, got)
}

// What a single run saves of a zip with one member a batch saves of each, and tells where it is broken.
func TestBrokenZipMembersAreSaved(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	long := `[{"ph":"i","name":"` + letters(rng, 1<<17) + `"}]`
	members := []member{{name: "1.json", content: trace("1")}, {name: "2.json", content: long}, {name: "3.json", content: trace("3")}}
	whole := zipball(t, members...)
	middle := bytes.Index(whole, []byte("2.json")) + 50_000
	stored := bytes.Index(whole, []byte("PK\x01\x02"))
	require.Less(t, middle, stored)
	var plain bytes.Buffer
	w := zip.NewWriter(&plain)
	for _, m := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: zip.Store})
		require.NoError(t, err)
		_, err = f.Write([]byte(m.content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	for name, b := range map[string][]byte{"deflated": whole, "stored": plain.Bytes()} {
		for _, hit := range []string{"zeros", "letter"} {
			t.Run(name+" "+hit, func(t *testing.T) {
				b := bytes.Clone(b)
				if hit == "zeros" {
					clear(b[middle : middle+64])
				} else {
					b[middle] ^= 1
				}
				in, out := t.TempDir(), t.TempDir()
				put(t, in, map[string]string{"x.zip": string(b)})
				r := run(t, Config{Paths: []string{filepath.Join(in, "x.zip")}, Out: out})
				require.Len(t, r.Traces, 3)
				for i, want := range []string{OK, Damaged, OK} {
					assert.Equal(t, want, r.Traces[i].Status, r.Traces[i].Error)
				}
				what := r.Traces[1].Damage[len(r.Traces[1].Damage)-1].What
				assert.Regexp(t, "^zip: expected compressed data, found something else at its byte [0-9]+ .*; copy the file again", what)
				saved := tree(t, out)["2.json"]
				assert.Greater(t, len(saved), len(long)/2)
				again := run(t, Config{Paths: []string{filepath.Join(in, "x.zip")}, Out: out, Resume: true})
				assert.Equal(t, r.Traces[1].Damage, again.Traces[1].Damage)
			})
		}
	}
}

func TestReportsAreTheSameForAnyNumberOfJobs(t *testing.T) {
	in := t.TempDir()
	files := map[string]string{}
	for i := range 60 {
		word := []string{"fine", "SLOW", "HURT", "FAIL", "CUT", "PANIC"}[i%6]
		files[fmt.Sprintf("d%d/%02d.json", i%4, i)] = trace(word)
	}
	files["x.zip"] = string(zipball(t, member{name: "a.json", content: trace("SLOW")}, member{name: "b.json", content: trace("CUT")}))
	files["y.tar.gz"] = string(gz(t, tarball(t, member{name: "a.json", content: trace("SLOW")}, member{name: "b.json", content: trace("HURT")})))
	put(t, in, files)
	var want map[string][]byte
	var wantTree map[string]string
	for _, jobs := range []int{1, 2, 8} {
		out := t.TempDir()
		g, err := ParseGate("cut>3", DoRepair)
		require.NoError(t, err)
		r := run(t, Config{Paths: []string{in}, Out: out, Jobs: jobs, Gates: []Gate{g}, MaxMemory: 64 << 20})
		require.NoError(t, Pack(t.Context(), Config{Out: out}, r, filepath.Join(out, "all.zip"), false))
		got := map[string][]byte{}
		for _, n := range []string{reportName + ".json", reportName + ".md", reportName + ".xml", reportName + ".html", "all.zip"} {
			b, err := os.ReadFile(filepath.Join(out, n))
			require.NoError(t, err)
			require.NotEmpty(t, b)
			got[n] = b
		}
		if want == nil {
			want, wantTree = got, tree(t, out)
			continue
		}
		for n := range want {
			assert.True(t, bytes.Equal(want[n], got[n]), "%s with %d jobs", n, jobs)
		}
		assert.Equal(t, wantTree, tree(t, out))
	}
}

func TestPackKeepsOrderAndContent(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"b.json": trace("b"), "a/c.json.gz": string(gz(t, []byte(trace("c"))))})
	r := run(t, Config{Paths: []string{in}, Out: out})
	p := filepath.Join(t.TempDir(), "o.zip")
	require.NoError(t, Pack(t.Context(), Config{Out: out}, r, p, false))
	z, err := zip.OpenReader(p)
	require.NoError(t, err)
	defer z.Close()
	require.Len(t, z.File, 2)
	for i, n := range []string{"a/c.json.gz", "b.json"} {
		assert.Equal(t, n, z.File[i].Name)
		f, err := z.File[i].Open()
		require.NoError(t, err)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		assert.Equal(t, tree(t, out)[n], string(b))
	}
	assert.ErrorIs(t, Pack(t.Context(), Config{Out: out}, r, p, false), output.ErrExists)
}

func TestHostileArchives(t *testing.T) {
	evil := []member{
		{name: "../up.json", content: trace("1")},
		{name: "/abs.json", content: trace("2")},
		{name: `..\..\win.json`, content: trace("3")},
		{name: `C:\win.json`, content: trace("4")},
		{name: `\\server\share.json`, content: trace("5")},
		{name: "a/../../b.json", content: trace("6")},
		{name: "link", link: "/etc"},
		{name: "link/passwd.json", content: trace("7")},
		{name: "CON.json", content: trace("8")},
		{name: "dot./x.json", content: trace("9")},
		{name: "new\nline.json", content: trace("10")},
		{name: "same.json", content: trace("11")},
		{name: "same.json", content: trace("12")},
		{name: "SAME.json", content: trace("13")},
		{name: "same.json/below.json", content: trace("14")},
		{name: stateDir + "/journal.ndjson", content: trace("15")},
		{name: reportName + ".json", content: trace("16")},
		{name: "__MACOSX/._x.json", content: trace("17")},
		{name: "caf\u00e9.json", content: trace("18")},
		{name: "cafe\u0301.json", content: trace("19")},
		{name: strings.Repeat("long", 60) + ".json", content: trace("20")},
		{name: `win\folder\ok.json`, content: trace("21")},
	}
	for form, b := range map[string][]byte{"zip": zipball(t, evil...), "tar": tarball(t, evil...), "tar.gz": gz(t, tarball(t, evil...))} {
		t.Run(form, func(t *testing.T) {
			parent := t.TempDir()
			put(t, parent, map[string]string{"in/evil." + form: string(b)})
			out := filepath.Join(parent, "x", "out")
			r := run(t, Config{Paths: []string{filepath.Join(parent, "in", "evil."+form)}, Out: out})
			got := tree(t, out)
			for _, n := range []string{"up.json", "abs.json", "win.json", "b.json", "share.json"} {
				assert.NotContains(t, got, n)
				assert.NoFileExists(t, filepath.Join(parent, n))
				assert.NoFileExists(t, filepath.Join(parent, "x", n))
			}
			assert.Equal(t, 6, r.Totals.Failed, "each that leads out is refused, and said")
			for _, x := range r.Traces {
				if x.Status == Failed {
					assert.Contains(t, x.Error, "refused")
				}
			}
			for n, want := range map[string]string{
				"CON_.json": "8", "dot_/x.json": "9", "new_line.json": "10", "same.json": "11", "same~2.json": "12",
				"SAME~2~2.json": "", "same.json~2/below.json": "14", reportName + "~2.json": "16",
				"café.json": "18", "win/folder/ok.json": "21", "link/passwd.json": "7",
			} {
				if want == "" {
					continue
				}
				assert.True(t, strings.HasSuffix(got[n], "\n"+trace(want)), "%s: %q", n, got[n])
			}
			folded := map[string]string{}
			for n := range got {
				assert.Empty(t, folded[fold(n)], "%s and %s differ by case or composition only", n, folded[fold(n)])
				folded[fold(n)] = n
			}
			assert.Equal(t, len(r.Outputs()), len(got))
			assert.Contains(t, r.Reasons, skipLink)
			assert.Equal(t, 2, r.Reasons[skipHidden])
		})
	}
}

func TestBombs(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	nested := []byte(trace("x"))
	for i := range 6 {
		nested = zipball(t, member{name: fmt.Sprintf("%d.zip", i), content: string(nested)}, member{name: "x.txt", content: "x"})
	}
	spaces := append([]byte(`[{"ph":"i"}`), bytes.Repeat([]byte(" "), memberAfter+1<<20)...)
	bomb := zipball(t, member{name: "big.json", content: string(spaces)})
	// A member whose directory entry points at the bytes of another one.
	two := zipball(t, member{name: "1.json", content: trace("1")}, member{name: "2.json", content: trace("2")})
	second := bytes.LastIndex(two, []byte("PK\x01\x02"))
	require.Positive(t, second)
	copy(two[second+42:second+46], []byte{0, 0, 0, 0})
	put(t, in, map[string]string{
		"deep.zip": string(nested), "bomb.zip": string(bomb), "overlap.zip": string(two),
		"twice.json.gz.gz": string(gz(t, gz(t, spaces))),
		"size.tar":         string(tarball(t, member{name: "z.json", content: trace("fits")})),
		"loop":             "->.", "sub/up": "->..", "sub/self": "->self", "gone": "->nothing", "link.json": "->size.tar",
	})
	r := run(t, Config{Paths: []string{in}, Out: out, MaxSize: 512 << 20})
	for _, x := range r.Traces {
		switch n := x.Input.Name; {
		case strings.Contains(n, "deep.zip/"):
			assert.Equal(t, Failed, x.Status, n)
			assert.Contains(t, x.Error, "deep")
		case strings.Contains(n, "overlap"):
			assert.Equal(t, Failed, x.Status, n)
			assert.Contains(t, x.Error, "shares its bytes")
		case strings.Contains(n, "bomb"), strings.Contains(n, "twice"):
			assert.Equal(t, Failed, x.Status, n)
			assert.Contains(t, x.Error, "bomb", n)
		}
	}
	assert.Equal(t, 3, r.Reasons[skipLoop])
	assert.Equal(t, 1, r.Reasons[skipBroken])
	assert.Equal(t, []string{"link.json/z.json", "size.tar/z.json"}, names(tree(t, out)))

	r = run(t, Config{Paths: []string{filepath.Join(in, "size.tar")}, Out: t.TempDir(), MaxSize: 10})
	require.Len(t, r.Traces, 1)
	assert.Contains(t, r.Traces[0].Error, "--max-size")
}

func TestBudgetHoldsAcrossTraces(t *testing.T) {
	in := t.TempDir()
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("%02d.json", i)] = `[{"ph":"i"}` + strings.Repeat(" ", 1<<20) + "]"
	}
	put(t, in, files)
	var now, most atomic.Int64
	work := func(ctx context.Context, f *input.File, job Job) (*report.Trace, error) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(2 * time.Millisecond)
		now.Add(-1)
		return fake(ctx, f, job)
	}
	each := cost(1<<20, false)
	run(t, Config{Paths: []string{in}, Out: t.TempDir(), Jobs: 8, MaxMemory: own + 3*each + 1, Work: work})
	assert.LessOrEqual(t, most.Load(), int64(3))
	assert.Greater(t, most.Load(), int64(1))
	most.Store(0)
	r := run(t, Config{Paths: []string{in}, Out: t.TempDir(), Jobs: 8, MaxMemory: 1, Work: work})
	assert.EqualValues(t, 1, most.Load(), "what needs more than there is works alone")
	assert.Equal(t, 40, r.Totals.OK)
}

func TestInterruptLeavesFinishedOutputs(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("%02d.json", i)] = trace("x")
	}
	put(t, in, files)
	ctx, stop := context.WithCancel(t.Context())
	var n atomic.Int32
	work := func(c context.Context, f *input.File, job Job) (*report.Trace, error) {
		if n.Add(1) == 10 {
			stop()
			return nil, c.Err()
		}
		return fake(c, f, job)
	}
	c := Config{Paths: []string{in}, Out: out, Do: DoRepair, Jobs: 1, Work: work}
	_, err := Run(ctx, c)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Len(t, tree(t, out), 9)
	assert.NoFileExists(t, filepath.Join(out, reportName+".json"))

	_, err = Run(t.Context(), c)
	var usage report.UsageError
	require.ErrorAs(t, err, &usage, "a second batch does not begin by itself")
	assert.ErrorContains(t, err, "--resume")

	n.Store(100)
	c.Resume = true
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	assert.EqualValues(t, 121, n.Load(), "what is done is not done again")
	assert.Equal(t, 30, r.Totals.OK)

	clean := t.TempDir()
	run(t, Config{Paths: []string{in}, Out: clean})
	want, _ := os.ReadFile(filepath.Join(clean, reportName+".json"))
	got, _ := os.ReadFile(filepath.Join(out, reportName+".json"))
	assert.Equal(t, string(want), string(got))
}

func TestResumeDoesWhatHasChanged(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"a.json": trace("a"), "b.json": trace("b"), "c.json": trace("c"), "d.json": trace("FAIL")})
	var mu sync.Mutex
	var done []string
	c := Config{Paths: []string{in}, Out: out, Resume: true, Options: "1", Work: func(ctx context.Context, f *input.File, job Job) (*report.Trace, error) {
		mu.Lock()
		done = append(done, filepath.Base(f.Name))
		mu.Unlock()
		return fake(ctx, f, job)
	}}
	again := func() []string {
		done = nil
		run(t, c)
		sort.Strings(done)
		return done
	}
	assert.Equal(t, []string{"a.json", "b.json", "c.json", "d.json"}, again())
	assert.Equal(t, []string{"d.json"}, again(), "what failed is tried again")
	put(t, in, map[string]string{"a.json": trace("other")})
	require.NoError(t, os.Remove(filepath.Join(out, "b.json")))
	put(t, out, map[string]string{"c.json": strings.Repeat("x", len(tree(t, out)["c.json"]))})
	assert.Equal(t, []string{"a.json", "b.json", "c.json", "d.json"}, again(), "new content, a lost output, a spoiled one")
	assert.Contains(t, tree(t, out)["a.json"], "other")
	assert.Zero(t, run(t, c).Redone)
	c.Options = "2"
	done = nil
	r := run(t, c)
	assert.Len(t, done, 4, "other options")
	assert.Equal(t, 3, r.Redone, "of what was done")
	// A file that is not ours is not replaced.
	put(t, in, map[string]string{"e.json": trace("e")})
	put(t, out, map[string]string{"e.json": "foreign"})
	r = run(t, c)
	assert.Equal(t, Failed, outcomes(r)[filepath.Join(in, "e.json")])
	assert.Equal(t, "foreign", tree(t, out)["e.json"])
	c.Resume, c.Force = false, true
	r = run(t, c)
	assert.Equal(t, OK, outcomes(r)[filepath.Join(in, "e.json")])
}

func TestJournalOutlivesATornLine(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"a.json": trace("a"), "b.json": trace("b")})
	run(t, Config{Paths: []string{in}, Out: out, Jobs: 1})
	p := filepath.Join(out, stateDir, "journal.ndjson")
	whole, err := os.ReadFile(p)
	require.NoError(t, err)
	begun := len("{}\n") + bytes.IndexByte(whole[len("{}\n"):], '\n')
	for n := 0; n <= len(whole); n += 7 {
		require.NoError(t, os.WriteFile(p, whole[:n], 0o666))
		put(t, out, map[string]string{".a.json.tracefix-0123abcd": "half"})
		r := run(t, Config{Paths: []string{in}, Out: out, Resume: true, Force: true})
		require.Equal(t, 2, r.Totals.OK, "%d of %d bytes", n, len(whole))
		if n > begun { // the line that says that a.json was begun is whole
			assert.NoFileExists(t, filepath.Join(out, ".a.json.tracefix-0123abcd"))
		}
	}
}

// An archive is given up for what kills runs between its members, and not where each run got further in it, or
// died on the way to what is not done.
func TestArchiveThatGetsOnIsNotGivenUp(t *testing.T) {
	in := t.TempDir()
	var members []member
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		members = append(members, member{name: name + ".json", content: trace(name)})
	}
	put(t, in, map[string]string{"x.tar": string(tarball(t, members...))})
	p := func(out string) string { return filepath.Join(out, stateDir, "journal.ndjson") }
	clean := t.TempDir()
	run(t, Config{Paths: []string{in}, Out: clean, Jobs: 1})
	whole, err := os.ReadFile(p(clean))
	require.NoError(t, err)
	all := newJournal()
	require.NoError(t, all.load(bytes.NewReader(whole)))
	died := func(facts ...fact) []byte { // a run that died between the members
		b, err := lines(append([]fact{{}, {Begin: "x.tar"}}, facts...)...)
		require.NoError(t, err)
		return b
	}
	does := func(at int) []byte {
		name := "x.tar/" + members[at].name
		return died(fact{Begin: name, In: "x.tar", At: at}, fact{Done: all.done[name]})
	}
	getsOn := slices.Concat(does(0), does(1), does(2))
	there, passed := fact{Begin: "x.tar"}, fact{Pass: "x.tar"}
	for _, c := range []struct {
		name    string
		journal []byte
		givenUp int
	}{
		{"each gets further", getsOn, 0},
		{"three at one place", slices.Concat(getsOn, died(passed, there), died(passed, there)), 1},
		{"on the way", slices.Concat(getsOn, died(passed), died(passed), died(passed)), 0},
		{"where it is opened", slices.Concat(died(), died(), died()), 1},
	} {
		for _, compact := range []bool{false, true} {
			journal := c.journal
			if compact {
				j := newJournal()
				require.NoError(t, j.load(bytes.NewReader(journal)))
				j.end()
				var err error
				journal, err = j.short()
				require.NoError(t, err)
			}
			out := t.TempDir()
			put(t, out, map[string]string{filepath.Join(stateDir, "journal.ndjson"): string(journal)})
			for name, content := range tree(t, clean) {
				if strings.HasPrefix(name, "x.tar/") && c.givenUp == 0 {
					put(t, out, map[string]string{name: content})
				}
			}
			r := run(t, Config{Paths: []string{in}, Out: out, Resume: true, Jobs: 1})
			assert.Equal(t, c.givenUp, r.Totals.Quarantined, c.name)
			if c.givenUp > 0 {
				continue
			}
			assert.Equal(t, 5, r.Totals.OK, c.name)
			// What died at the last place that was reached is told apart from what died before it.
			got, err := os.ReadFile(p(out))
			require.NoError(t, err)
			_, last, _ := strings.Cut(string(got), `{"pass":"x.tar"`)
			assert.Contains(t, last, `{"begin":"x.tar","sum"`, c.name)
		}
	}
}

// What a journal lacks, since the machine went down before it was on the disk, is made again and
// compared: the same is taken, and anything else is somebody's.
func TestJournalThatLacksItsEnd(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"a.json": trace("a"), "d/b.json": trace("b")})
	run(t, Config{Paths: []string{in}, Out: out, Jobs: 1})
	made := tree(t, out)
	p := filepath.Join(out, stateDir, "journal.ndjson")
	whole, err := os.ReadFile(p)
	require.NoError(t, err)
	for n := 1; n <= len(whole); n += 37 {
		require.NoError(t, os.WriteFile(p, whole[:n], 0o666))
		r := run(t, Config{Paths: []string{in}, Out: out, Resume: true})
		require.Equal(t, 2, r.Totals.OK, "%d of %d bytes", n, len(whole))
		require.Equal(t, made, tree(t, out))
		require.Equal(t, "d/b.json", r.Traces[1].Output.Name)
	}
	for range 2 { // also for the run after the one that looked
		require.NoError(t, os.WriteFile(p, []byte("{}\n"), 0o666))
		put(t, out, map[string]string{"a.json": "somebody else's"})
		for range 2 {
			r := run(t, Config{Paths: []string{in}, Out: out, Resume: true})
			require.Equal(t, 1, r.Totals.Failed)
			assert.Equal(t, "a.json: "+output.ErrExists.Error(), r.Traces[0].Error)
			assert.Equal(t, "somebody else's", tree(t, out)["a.json"])
		}
	}
	left, err := os.ReadDir(filepath.Join(out, stateDir))
	require.NoError(t, err)
	assert.Len(t, left, 1, "the journal")
}

// A flipped bit in a journal changes nothing in the report of a run that goes on with it.
func TestJournalThatIsHurt(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"a.json": trace("CUT"), "b.json": trace("HURT")})
	run(t, Config{Paths: []string{in}, Out: out, Jobs: 1})
	p := filepath.Join(out, stateDir, "journal.ndjson")
	whole, err := os.ReadFile(p)
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(out, reportName+rowsEnd))
	require.NoError(t, err)
	for at := range whole {
		if at%19 != 0 && (whole[at] < '0' || whole[at] > '9' || at%3 != 0) {
			continue
		}
		hurt := bytes.Clone(whole)
		hurt[at] ^= 1
		require.NoError(t, os.WriteFile(p, hurt, 0o666))
		run(t, Config{Paths: []string{in}, Out: out, Resume: true})
		got, err := os.ReadFile(filepath.Join(out, reportName+rowsEnd))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "byte %d", at)
	}
	// Lines of older versions have no checksum.
	old := regexp.MustCompile(`,"sum":"[0-9a-f]{8}"}`).ReplaceAll(whole, []byte("}"))
	require.NotEqual(t, whole, old)
	require.NoError(t, os.WriteFile(p, old, 0o666))
	run(t, Config{Paths: []string{in}, Out: out, Resume: true, Work: func(context.Context, *input.File, Job) (*report.Trace, error) {
		return nil, errors.New("made again")
	}})
	got, err := os.ReadFile(filepath.Join(out, reportName+rowsEnd))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

// A folder of outputs is read once, however many of them a batch began: to read it for each one
// takes longer than to make them all again.
func TestLeftoversAreFoundInOneReading(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{".a.json.tracefix-0123abcd": "", ".b.json.tracefix-0123abcd": "", ".c.json.tracefix-0123abcd": "", "a.json": "", ".a.json": ""})
	l := leftovers{}
	l.sweep(filepath.Join(dir, "a.json"))
	put(t, dir, map[string]string{".b.json.tracefix-00000000": ""})
	l.sweep(filepath.Join(dir, "b.json"))
	l.sweep(filepath.Join(dir, "none", "b.json"))
	assert.ElementsMatch(t, []string{".c.json.tracefix-0123abcd", ".b.json.tracefix-00000000", "a.json", ".a.json"}, names(tree(t, dir)))
}

func TestTwoBatchesDoNotShareAFolder(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"a.json": trace("a")})
	var inner error
	run(t, Config{Paths: []string{in}, Out: out, Work: func(ctx context.Context, f *input.File, job Job) (*report.Trace, error) {
		_, inner = Run(ctx, Config{Paths: []string{in}, Out: out, Do: DoRepair, Resume: true, Work: fake})
		return fake(ctx, f, job)
	}})
	assert.ErrorContains(t, inner, "another tracefix batch")
}

// Of a batch that did not begin nothing stays.
func TestBatchThatDoesNotBegin(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"a.json": trace("a")})
	put(t, out, map[string]string{"batch-report.json": "somebody else's"})
	_, err := Run(t.Context(), Config{Paths: []string{in}, Out: out, Do: DoRepair, Work: fake})
	require.ErrorIs(t, err, output.ErrExists)
	assert.NoDirExists(t, filepath.Join(out, stateDir))
	run(t, Config{Paths: []string{in}, Out: out, Force: true})
	_, err = Run(t.Context(), Config{Paths: []string{in}, Out: out, Do: DoRepair, Work: fake})
	require.Error(t, err)
	assert.DirExists(t, filepath.Join(out, stateDir), "one that did keeps what --resume needs")
}

func TestOutputsAreNoInputs(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a.json": trace("a")})
	out := filepath.Join(dir, "out")
	for range 2 {
		r := run(t, Config{Paths: []string{dir}, Out: out, Force: true})
		assert.Equal(t, 1, r.Totals.Traces)
		assert.Equal(t, []string{"a.json"}, names(tree(t, out)))
	}
	_, err := Run(t.Context(), Config{Paths: []string{dir}, Out: dir, Do: DoRepair, Force: true, Work: fake})
	assert.ErrorContains(t, err, "is an input itself")
	r := run(t, Config{Paths: []string{filepath.Join(dir, "a.json")}, Out: dir, Force: true})
	assert.Equal(t, 1, r.Totals.Failed, "no input is written over, not even with --force")
	b, _ := os.ReadFile(filepath.Join(dir, "a.json"))
	assert.Equal(t, trace("a"), string(b))
}

// An output may not take the place of another input either, whichever of them is read first, nor of
// the archive that it is made from.
func TestNoOutputTakesThePlaceOfAnInput(t *testing.T) {
	z := string(zipball(t, member{name: "traces.zip", content: trace("member")}, member{name: "b.json", content: trace("b")}))
	for _, c := range []struct {
		name  string
		files map[string]string
		paths []string
		out   string // in place of .
		not   string // is not made
		other string // is
	}{
		{"a file", map[string]string{"sub/x.json": trace("sub"), "x.json": trace("x")}, []string{"sub/x.json", "x.json"}, "", "x.json", "x~2.json"},
		{"a file by a link", map[string]string{"sub/x.json": trace("sub"), "x.json": trace("x"), "l.json": "->x.json"}, []string{"sub/x.json", "l.json"}, "", "x.json", "l.json"},
		{"of the archive", map[string]string{"traces.zip": z}, []string{"traces.zip"}, "", "traces.zip", "b.json"},
		{"in a folder", map[string]string{"in/x.json": trace("x"), "in/in/x.json": trace("deep")}, []string{"in"}, "", "in/x.json", "x.json"},
		{"that a pattern matches", map[string]string{"in/x.json": trace("x"), "in/in/x.json": trace("deep")}, []string{"in/**/*.json"}, "", "in/x.json", "x.json"},
		{"by a folder that is a link", map[string]string{"in/x.json": trace("x"), "in/in/x.json": trace("deep"), "there": "->."}, []string{"in"}, "there", "in/x.json", "x.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			put(t, ".", c.files)
			before, err := os.ReadFile(c.not)
			require.NoError(t, err)
			_, err = os.Lstat(c.other)
			isLink := err == nil
			for range 2 { // what the first run made is its own
				r := run(t, Config{Paths: c.paths, Out: cmp.Or(c.out, "."), Force: true})
				var failed []string
				for _, x := range r.Traces {
					if x.Status == Failed {
						failed = append(failed, x.Error)
					}
				}
				n := 1
				if isLink { // leads to an input, too
					n = 2
				}
				require.Len(t, failed, n)
				assert.Equal(t, c.not+": is an input of this batch as well; name another folder for the outputs", failed[0])
				after, err := os.ReadFile(c.not)
				require.NoError(t, err)
				assert.Equal(t, string(before), string(after))
				assert.FileExists(t, c.other)
			}
		})
	}
	// Beside its inputs a batch may lie, and replace what it made.
	t.Run("beside", func(t *testing.T) {
		t.Chdir(t.TempDir())
		put(t, ".", map[string]string{"a/x.json": trace("x"), "b/x.json": trace("y")})
		for range 2 {
			r := run(t, Config{Paths: []string{"a/x.json", "b/x.json"}, Out: "a", Do: "info", Force: true})
			assert.Equal(t, 2, r.Totals.OK)
		}
		t.Chdir(t.TempDir())
		put(t, ".", map[string]string{"a/x.json": trace("x"), "b/x.json": trace("y")})
		for range 2 {
			r := run(t, Config{Paths: []string{"a", "b"}, Out: ".", Do: "info", Force: true})
			assert.Equal(t, OK, outcomes(r)[filepath.Join("a", "x.json")], r.Traces)
		}
	})
}

// Nor is it told that --force would help.
func TestForceIsNotAdvisedForAnInput(t *testing.T) {
	for want, paths := range map[string][]string{
		"x.json: is the input as well; name another output":                              {"x.json"},
		"x.json: is an input of this batch as well; name another folder for the outputs": {"sub/x.json", "x.json"},
	} {
		t.Chdir(t.TempDir())
		put(t, ".", map[string]string{"sub/x.json": trace("sub"), "x.json": trace("x")})
		r := run(t, Config{Paths: paths, Out: "."})
		require.Equal(t, 1, r.Totals.Failed)
		assert.Equal(t, want, r.Traces[0].Error)
	}
}

// A batch that starts over and is killed knows what the one before made: it is no stranger's.
func TestStartedOverAndKilled(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"a.json": trace("a"), "b.json": trace("b")})
	run(t, Config{Paths: []string{in}, Out: out})
	ctx, kill := context.WithCancel(t.Context())
	_, err := Run(ctx, Config{Paths: []string{in}, Out: out, Do: DoRepair, Force: true, Jobs: 1, Work: func(ctx context.Context, _ *input.File, _ Job) (*report.Trace, error) {
		kill()
		return nil, ctx.Err()
	}})
	require.ErrorIs(t, err, context.Canceled)
	r := run(t, Config{Paths: []string{in}, Out: out, Resume: true})
	assert.Equal(t, 2, r.Totals.OK)
}

// A folder's name that looks like a pattern hides no shard's journal.
func TestShardsInAFolderLikeAPattern(t *testing.T) {
	in := t.TempDir()
	put(t, in, map[string]string{"a.json": trace("a"), "b.json": trace("b")})
	for _, name := range []string{"out[1]", "out["} {
		out := filepath.Join(t.TempDir(), name)
		for i := range 2 {
			run(t, Config{Paths: []string{in}, Out: out, Shard: Shard{Index: i + 1, Count: 2}})
		}
		r := run(t, Config{Paths: []string{in}, Out: out, Resume: true, Work: func(context.Context, *input.File, Job) (*report.Trace, error) {
			return nil, errors.New("made again")
		}})
		assert.Equal(t, 2, r.Totals.OK, name)
	}
}

func TestShards(t *testing.T) {
	in := t.TempDir()
	files := map[string]string{"n.txt": "x", "n2.txt": "x", "z.zip": string(zipball(t, member{name: "a.json", content: trace("CUT")}, member{name: "b.json", content: trace("HURT")}, member{name: "b.json", content: trace("CUT")}))}
	for i := range 40 {
		files[fmt.Sprintf("%02d.json", i)] = trace([]string{"fine", "CUT", "FAIL"}[i%3])
	}
	put(t, in, files)
	whole := t.TempDir()
	g, err := ParseGate("cut>3", DoRepair)
	require.NoError(t, err)
	want := run(t, Config{Paths: []string{in}, Out: whole, Gates: []Gate{g}})

	out := t.TempDir()
	var reports []*Report
	n := 0
	for i := 1; i <= 3; i++ {
		r := run(t, Config{Paths: []string{in}, Out: out, Shard: Shard{Index: i, Count: 3}})
		assert.NotZero(t, r.Totals.Traces)
		n += r.Totals.Traces
		var b bytes.Buffer
		require.NoError(t, r.WriteJSON(&b))
		onDisk, err := os.ReadFile(filepath.Join(out, fmt.Sprintf("%s-%d-of-3.json", reportName, i)))
		require.NoError(t, err)
		assert.Equal(t, b.String(), string(onDisk))
		r, err = ReadReport(&b)
		require.NoError(t, err)
		reports = append(reports, r)
	}
	assert.Equal(t, want.Totals.Traces, n, "each trace is in one shard")
	assert.Equal(t, tree(t, whole), tree(t, out))
	merged, err := merge(t, []Gate{g}, reports[2], reports[0], reports[1])
	require.NoError(t, err)
	var a, b bytes.Buffer
	require.NoError(t, want.WriteJSON(&a))
	require.NoError(t, merged.WriteJSON(&b))
	assert.Equal(t, a.String(), b.String(), "merged shards tell what one run tells")
	for i, w := range want.writers("") {
		a.Reset()
		b.Reset()
		require.NoError(t, w.write(&a))
		require.NoError(t, merged.writers("")[i].write(&b))
		assert.Equal(t, a.String(), b.String(), w.end)
	}

	_, err = merge(t, nil, reports[:2]...)
	assert.ErrorContains(t, err, "3/3 is missing")
	_, err = merge(t, nil, &Report{Command: "batch", Shard: &Shard{Index: 1, Count: 1 << 30}})
	assert.ErrorContains(t, err, ", shard 11/1073741824, ... is missing")
	_, err = merge(t, nil, reports[0], reports[0])
	assert.ErrorContains(t, err, "and so is report 1")
	_, err = merge(t, nil, want)
	assert.ErrorContains(t, err, "not of a shard")
	digest := reports[1].List.Digest
	reports[1].List.Digest = "other"
	_, err = merge(t, nil, reports...)
	assert.ErrorContains(t, err, "report 2: is of another list of inputs")
	reports[1].List.Digest = digest
	reports[1].List.Own--
	_, err = merge(t, nil, reports...)
	assert.ErrorContains(t, err, "of which there are 43")

	r := run(t, Config{Paths: []string{in}, Out: out, Resume: true})
	assert.Equal(t, want.Totals, r.Totals, "shards resume as one")
}

// letters do not get smaller when they are compressed.
func letters(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[rng.IntN(36)]
	}
	return string(b)
}

// TestReplacedZip: whoever has some members of a zip does not take those of another one, of which others
// would be done by nobody.
func TestReplacedZip(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	ball := func(n int) string {
		var all []member
		for i := range n {
			all = append(all, member{name: fmt.Sprintf("%02d.json", i), content: trace(letters(rng, 256<<10))})
		}
		return string(zipball(t, all...))
	}
	put(t, in, map[string]string{"z.zip": ball(12)})
	c := Config{Paths: []string{in}, Out: out, Do: DoRepair}
	p, err := MakePlan(t.Context(), c, 3)
	require.NoError(t, err)
	require.Equal(t, 3, p.Pieces)
	c.Paths, c.Manifest = nil, &Manifest{Name: filepath.Join(out, planName)}
	for i, members := range []int{12, 14, 0} {
		if members > 0 {
			put(t, in, map[string]string{"z.zip": ball(members)})
		} else {
			put(t, in, map[string]string{"z.zip": ball(12)[:1<<20]})
		}
		c.Manifest.Piece = i
		r := run(t, c)
		if i == 0 {
			assert.Equal(t, 4, r.Totals.OK)
			continue
		}
		require.Len(t, r.Traces, 1)
		assert.Contains(t, r.Traces[0].Error, "was replaced since its members were dealt out")
	}
}

// TestPlanIsReadOnce: who asked what a piece is for does the piece without a second look at the plan.
func TestPlanIsReadOnce(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	put(t, in, map[string]string{"a.json": trace(""), "b.json": trace("")})
	c := Config{Paths: []string{in}, Out: out, Do: DoRepair}
	_, err := MakePlan(t.Context(), c, 2)
	require.NoError(t, err)
	c.Paths, c.Manifest = nil, &Manifest{Name: filepath.Join(out, planName), Piece: 1}
	do, _, err := c.Manifest.Doing(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, DoRepair, do)

	b, err := os.ReadFile(c.Manifest.Name)
	require.NoError(t, err)
	copy(b, bytes.Repeat([]byte("x"), bytes.IndexByte(b, '\n'))) // the pieces stay where they are
	require.NoError(t, os.WriteFile(c.Manifest.Name, b, 0o600))
	assert.Equal(t, 1, run(t, c).Totals.OK)
	_, _, err = (&Manifest{Name: c.Manifest.Name}).Doing(t.Context(), c)
	assert.Error(t, err)
}

// merge joins reports as they are read back from their files, in either form.
func merge(t *testing.T, gates []Gate, reports ...*Report) (*Report, error) {
	t.Helper()
	m, err := NewMerger()
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	for i, r := range reports {
		var b bytes.Buffer
		if i%2 == 0 {
			require.NoError(t, r.WriteRows(&b))
		} else {
			require.NoError(t, r.WriteJSON(&b))
		}
		if err := m.Add(fmt.Sprintf("report %d", i+1), &b); err != nil {
			return nil, err
		}
	}
	return m.Report(gates)
}

func TestShardFlags(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Shard
		err  bool
	}{{"1/1", Shard{Index: 1, Count: 1}, false}, {"2/5", Shard{Index: 2, Count: 5}, false}, {"0/5", Shard{}, true}, {"6/5", Shard{}, true}, {"x", Shard{}, true}, {"1/", Shard{}, true}} {
		got, err := ParseShard(c.in)
		assert.Equal(t, c.err, err != nil, c.in)
		assert.Equal(t, c.want, got)
	}
	for _, c := range []struct {
		env  map[string]string
		want Shard
		err  bool
	}{
		{nil, Shard{}, false},
		{map[string]string{"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "4"}, Shard{Index: 1, Count: 4}, false},
		{map[string]string{"JOB_COMPLETION_INDEX": "4", "JOB_COMPLETIONS": "4"}, Shard{}, true},
		{map[string]string{"JOB_COMPLETION_INDEX": "1"}, Shard{}, true},
	} {
		got, err := ShardFromEnv(func(k string) string { return c.env[k] })
		assert.Equal(t, c.err, err != nil, c.env)
		assert.Equal(t, c.want, got)
	}
}

func TestManyMembersInOneArchive(t *testing.T) {
	if testing.Short() {
		t.Skip("three thousand members")
	}
	var members []member
	for i := range 3000 {
		members = append(members, member{name: fmt.Sprintf("%d/%d.json", i%100, i), content: trace(fmt.Sprint(i))})
	}
	in := t.TempDir()
	put(t, in, map[string]string{"many.tar.gz": string(gz(t, tarball(t, members...)))})
	r := run(t, Config{Paths: []string{filepath.Join(in, "many.tar.gz")}, Out: t.TempDir(), MaxMemory: 64 << 20})
	assert.Equal(t, 3000, r.Totals.OK)
}

// TestBrokenArchivesNeverPanic turns over bytes of archives and cuts them: whatever
// comes out is told, nothing crosses the output folder, nothing panics.
func TestBrokenArchivesNeverPanic(t *testing.T) {
	members := []member{{name: "a.json", content: trace("a")}, {name: "b/c.json", content: trace(strings.Repeat("c", 3000))}, {name: "d.json.gz", content: string(gz(t, []byte(trace("d"))))}}
	inner := tarball(t, members...)
	archives := map[string][]byte{
		"x.zip": zipball(t, append(members, member{name: "in.tar", content: string(inner)})...), "x.tar": inner,
		"x.tar.gz": gz(t, inner), "x.tar.zst": zst(t, tarball(t, append(members, member{name: "in.zip", content: string(zipball(t, members...))})...)),
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, whole := range archives {
		for range 25 {
			b := bytes.Clone(whole)
			for range 1 + rng.IntN(4) {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
			if rng.IntN(3) == 0 {
				b = b[:rng.IntN(len(b))]
			}
			parent := t.TempDir()
			put(t, parent, map[string]string{"in/" + name: string(b)})
			r := run(t, Config{Paths: []string{filepath.Join(parent, "in")}, Out: filepath.Join(parent, "out")})
			assert.NotZero(t, r.Totals.Traces+r.Totals.Skipped, "%s: nothing is told", name)
			assert.Len(t, tree(t, filepath.Join(parent, "out")), len(r.Outputs()))
			left, err := os.ReadDir(parent)
			require.NoError(t, err)
			assert.Len(t, left, 2)
		}
	}
}

func FuzzMemberName(f *testing.F) {
	for _, s := range []string{"a/b.json", `..\x`, "/x", "C:x", "a//b/./c", "CON", "x.", "a\x00b", "\xff/\u202e", strings.Repeat("x", 300), "COM1.txt/..", "..."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := memberName(s)
		if err != nil {
			return
		}
		assert.True(t, filepath.IsLocal(filepath.FromSlash(n)), "%q", n)
		for p := range strings.SplitSeq(n, "/") {
			assert.NotEmpty(t, p)
			assert.NotContains(t, []string{".", ".."}, p)
			assert.LessOrEqual(t, len(p), 255)
			assert.Equal(t, p, strings.TrimRight(p, ". "), "%q", n)
		}
		again, err := memberName(n)
		assert.NoError(t, err)
		assert.Equal(t, n, again, "a safe name stays as it is")
	})
}

// Files that want the name of a folder, and files in that folder: where the numbers go
// on is known.
func TestNamesOfFilesAndFolders(t *testing.T) {
	tracetest.Growth(t, 500, func(n int) {
		names := newOutNamer(true)
		for i := range n {
			want := "x"
			if i > 0 {
				want = fmt.Sprintf("x~%d", i+1)
			}
			require.Equal(t, want, names.take("x"))
		}
		folder := fmt.Sprintf("x~%d", n+1)
		for i := range n {
			require.Equal(t, fmt.Sprintf("%s/t%d", folder, i), names.take(fmt.Sprintf("x/t%d", i)))
		}
	})
}

// The output folder is taken out of the paths that begin with it, and of nothing else.
func TestOutputFolderInMessages(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("paths are written otherwise")
	}
	for _, c := range []struct{ out, msg, want string }{
		{"out", "open out/a.json: exists", "open a.json: exists"},
		{"out", "out/a.json: \"out/b.json\" exists", "a.json: \"b.json\" exists"},
		{"./out/", "open ./out/a.json and out/b.json", "open a.json and b.json"},
		{"/x/out", "/x/out/a.json: exists", "a.json: exists"},
		{"out", "checkout/bad: in/out/bad: in-out/bad", "checkout/bad: in/out/bad: in-out/bad"},
		{"out", "out/out/a", "out/a"},
		{".", "read ./a. in a./b", "read ./a. in a./b"},
		{"..", "../in/a.json: cut", "../in/a.json: cut"},
		{"../..", "../../in/a.json: cut", "../../in/a.json: cut"},
		{"/", "/in/a.json: cut", "/in/a.json: cut"},
		{"s3://b/x/", "s3://b/x/a.json: denied", "a.json: denied"},
	} {
		r := &runner{Config: &Config{Out: c.out}}
		assert.Equal(t, c.want, r.relative(c.msg), c.out)
	}
}
