package tracefix_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix"
	"github.com/tracefix/tracefix/internal/batch"
	"github.com/tracefix/tracefix/internal/command"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/profile"
)

// onlyThread is a stranger's pass: a struct whose fields are its flags, and a row.
type onlyThread struct {
	OnlyThread string `help:"Keep one thread."`
}

func (o *onlyThread) Check() error                   { return nil }
func (o *onlyThread) Wanted() bool                   { return o.OnlyThread != "" }
func (o *onlyThread) Reads(o2 *tracefix.ReadOptions) {}
func (o *onlyThread) Apply(p *profile.Profile, warn func(string)) {
	p.Select(profile.Selection{Threads: []string{o.OnlyThread}})
	warn("one thread was kept")
}

// A new output and a new pass are a file and a row each: commands, their flags and batches follow.
func TestStrangersRows(t *testing.T) {
	command.Passes = append(command.Passes, command.Pass{Name: "only thread", Flags: func() command.PassFlags { return &onlyThread{} }})
	t.Cleanup(func() { command.Passes = command.Passes[:len(command.Passes)-1] })

	row := command.Lookup("convert")
	flags := struct {
		Job kong.Plugins `embed:""`
	}{kong.Plugins{row.New()}}
	k, err := kong.New(&flags, kong.Vars{"tracks": ""})
	require.NoError(t, err)
	_, err = k.Parse([]string{"--only-thread", "3019"})
	require.NoError(t, err)
	job := flags.Job[0].(command.Job)
	require.NoError(t, row.Check(job, command.Options{Format: "stranger"}))

	const name = "testdata/chain.chromium.json.zst"
	run := func(job command.Job) (string, []string) {
		in, err := input.Open(t.Context(), name, nil)
		require.NoError(t, err)
		defer in.Close()
		var out bytes.Buffer
		rep, err := row.Run(t.Context(), job, in, command.Options{Out: "-", Format: "stranger", Stdout: &out})
		require.NoError(t, err)
		return strings.TrimSpace(out.String()), rep.Notes
	}
	all, notes := run(row.New())
	assert.Equal(t, "2478", all)
	assert.NotContains(t, notes, "one thread was kept")
	some, notes := run(job)
	assert.Contains(t, notes, "one thread was kept")
	assert.NotEqual(t, all, some)

	dir := t.TempDir()
	_, err = batch.Run(t.Context(), batch.Config{
		Paths: []string{name}, Out: dir, Do: "convert", Format: "stranger",
		Work: batch.WorkOf(row, job, command.Options{}), Jobs: 1,
	})
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.stranger"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	b, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.Equal(t, some, strings.TrimSpace(string(b)), "a batch writes the same")
}

// Every kind of input has an example here, and info and every command that takes any trace read
// it: nobody but the table of inputs knows which kinds there are.
func TestEveryKindOfInput(t *testing.T) {
	const made = "testdata/chain.chromium.json.zst"
	examples := map[string]string{
		"nettrace": "testdata/chain.nettrace.zst", "netperf": "testdata/nettrace/tracelogging.netperf",
		"chromium": made, "perf script": "internal/samples/testdata/app.perf.txt.zst",
	}
	f, err := tracefix.Open(t.Context(), made)
	require.NoError(t, err)
	defer f.Close()
	p, err := f.Profile(t.Context(), nil)
	require.NoError(t, err)
	for _, k := range input.Kinds() {
		t.Run(k.String(), func(t *testing.T) {
			name := examples[k.String()]
			if name == "" { // it is its own output
				name = filepath.Join(t.TempDir(), "made")
				var b bytes.Buffer
				require.NoError(t, tracefix.Write(&b, p, k.Own(), nil))
				require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
			}
			for _, row := range command.Table {
				in, err := input.Open(t.Context(), name, nil)
				require.NoError(t, err)
				require.Equal(t, k, in.Kind)
				if len(row.Reads) < len(input.Kinds()) {
					continue
				}
				if k == input.Netperf && row.Name != "info" {
					continue // the example holds no samples
				}
				var out bytes.Buffer
				rep, err := row.Run(t.Context(), row.New(), in, command.Options{Out: "-", Stdout: &out, Format: row.Batch})
				require.NoError(t, err, "%s of %s", row.Name, k)
				assert.NotEmpty(t, out.String(), "%s of %s", row.Name, k)
				assert.Zero(t, rep.Damages, "%s of %s", row.Name, k)
				require.NoError(t, in.Close())
			}
		})
	}
}
