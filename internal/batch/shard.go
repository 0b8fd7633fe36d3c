package batch

import (
	"fmt"
	"strconv"
	"strings"
)

// A Shard is one of Count parts of the list, counted from 1. The zero value is all of it.
type Shard struct {
	Index int `json:"index"`
	Count int `json:"count"`
	// Piece says that a plan made the parts. People and engines count pieces from 0.
	Piece bool `json:"piece,omitempty"`
}

// ParseShard reads "2/5".
func ParseShard(s string) (Shard, error) {
	a, b, ok := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || n < 1 || i < 1 || i > n {
		return Shard{}, fmt.Errorf("--shard %q: must be i/n with 1 <= i <= n, such as 2/5", s)
	}
	return Shard{Index: i, Count: n}, nil
}

// ShardFromEnv reads the shard from the environment of a Kubernetes Job whose
// completionMode is Indexed. Kubernetes gives the index (from 0) only; the manifest
// has to give the number of completions.
func ShardFromEnv(getenv func(string) string) (Shard, error) {
	index := getenv("JOB_COMPLETION_INDEX")
	if index == "" {
		return Shard{}, nil
	}
	for _, name := range []string{"JOB_COMPLETIONS", "JOB_COMPLETION_COUNT"} {
		count := getenv(name)
		if count == "" {
			continue
		}
		i, err1 := strconv.Atoi(index)
		n, err2 := strconv.Atoi(count)
		if err1 != nil || err2 != nil || i < 0 || i >= n {
			return Shard{}, fmt.Errorf("JOB_COMPLETION_INDEX=%q and %s=%q name no shard: the index counts from 0 to one below the completions", index, name, count)
		}
		return Shard{Index: i + 1, Count: n}, nil
	}
	return Shard{}, fmt.Errorf("JOB_COMPLETION_INDEX=%s, but JOB_COMPLETIONS is not set: set it to the Job's completions, or give --shard (1/1 for all)", index)
}

// suffix is what the shard adds to names of files of its own.
func (s Shard) suffix() string {
	switch {
	case s.Piece:
		return fmt.Sprintf("-piece-%d-of-%d", s.Index-1, s.Count)
	case s.Count <= 1:
		return ""
	}
	return fmt.Sprintf("-%d-of-%d", s.Index, s.Count)
}

// orAll is the shard, or all of the list if there is none.
func (s *Shard) orAll() Shard {
	if s == nil {
		return Shard{}
	}
	return *s
}

// report is where the shard's reports lie, without their ends. Those of pieces, of which
// there are many, lie out of sight.
func (s Shard) report() string {
	if s.Piece {
		return stateDir + "/" + reportName + s.suffix()
	}
	return reportName + s.suffix()
}

// ends are the forms of the shard's reports: of a piece only the one that merge reads.
func (s Shard) ends() []string {
	if s.Piece {
		return []string{rowsEnd}
	}
	return reportEnds
}

// String names the shard as people give it.
func (s Shard) String() string {
	if s.Piece {
		return fmt.Sprintf("piece %d of %d (counted from 0)", s.Index-1, s.Count)
	}
	return fmt.Sprintf("shard %d/%d", s.Index, s.Count)
}
