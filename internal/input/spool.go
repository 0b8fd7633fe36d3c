package input

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/tracefix/tracefix/internal/output"
	"github.com/tracefix/tracefix/internal/spool"
)

// ErrSpool reports an input without an end, or with one too far away: what cannot be read twice is
// kept on the disk.
var ErrSpool = errors.New("the temporary file of the input grows too large")

// spoolEnv names the variable that limits a temporary file, in bytes or as 500M, 20G.
const spoolEnv = "TRACEFIX_MAX_SPOOL"

// SpoolLimit is how many bytes a temporary file in dir may take: what the environment says, else
// nine tenths of what is free there now.
func SpoolLimit(dir string) (int64, error) {
	if text := os.Getenv(spoolEnv); text != "" {
		n, err := parseSize(text)
		if err != nil {
			return 0, fmt.Errorf("%s=%s: expected a size, such as 500M or 20G", spoolEnv, text)
		}
		return n, nil
	}
	if free, ok := freeSpace(dir); ok {
		return free / 10 * 9, nil
	}
	return 1 << 40, nil
}

// Aside returns a Spool whose file is a temporary one of ours, and of which so many bytes stay in
// memory (0: as many as it says).
func Aside(memory int64) *spool.Spool { return &spool.Spool{Create: scratch, Memory: memory} }

// scratch makes the file of a spool.Spool. It grows as far as any temporary file of ours; what it
// does not take stays in memory.
func scratch() (spool.File, error) {
	limit, err := SpoolLimit(os.TempDir())
	if err != nil {
		return nil, err
	}
	f, err := output.NamelessFile("tracefix-scratch-")
	if err != nil {
		return nil, err
	}
	return &limitedFile{f, limit}, nil
}

type limitedFile struct {
	*os.File
	limit int64 // bytes
}

// WriteAt implements io.WriterAt.
func (f *limitedFile) WriteAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > f.limit {
		return 0, ErrSpool
	}
	return f.File.WriteAt(b, at)
}

// parseSize reads a number of bytes with a unit of 1,000: K, M, G, T.
func parseSize(text string) (int64, error) {
	upper := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text)), "B")
	digits := strings.TrimRight(upper, "KMGT")
	scale, ok := map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[upper[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n <= 0 || n > math.MaxInt64/scale {
		return 0, errors.New("no size")
	}
	return n * scale, nil
}
