package batch

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// A Shard is one of Count parts of the list, counted from 1. The zero value is all of it.
type Shard struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// ParseShard reads "2/5".
func ParseShard(s string) (Shard, error) {
	a, b, ok := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || n < 1 || i < 1 || i > n {
		return Shard{}, fmt.Errorf("--shard %q: must be i/n with 1 <= i <= n, such as 2/5", s)
	}
	return Shard{i, n}, nil
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
		return Shard{i + 1, n}, nil
	}
	return Shard{}, fmt.Errorf("JOB_COMPLETION_INDEX=%s, but JOB_COMPLETIONS is not set: set it to the Job's completions, or give --shard (1/1 for all)", index)
}

// has says whether the input of that name is part of the shard. It follows from the
// name alone: an input that appears while shards run moves no other.
func (s Shard) has(name string) bool {
	if s.Count <= 1 {
		return true
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	x := h.Sum64() // the low bits of FNV follow the last byte: mix them
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return int(x%uint64(s.Count)) == s.Index-1
}

// suffix is what the shard adds to names of files of its own.
func (s Shard) suffix() string {
	if s.Count <= 1 {
		return ""
	}
	return fmt.Sprintf("-%d-of-%d", s.Index, s.Count)
}
