package batch

import (
	"cmp"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
)

// What a trace costs whatever its size, as bytes: to ask for it, and to write its output.
const perTrace = 64 << 10

func (e *entry) work() int64 {
	switch {
	case e.Skip != "" || e.Refused != "":
		return 1
	case e.Members != nil:
		return e.Share + perTrace*int64(e.Members.To-e.Members.From)
	}
	return e.Size + perTrace
}

// bytes is how much of the input an entry is.
func (e *entry) bytes() int64 {
	if e.Members != nil {
		return e.Share
	}
	return e.Size
}

// listAll lists all inputs of c, for parts of it: what cannot be listed is an error. count
// says for the work that there is how many parts there are to be; zips with more work than
// one of them are split.
func listAll(ctx context.Context, c *Config, st *stores, count func(work int64) int) (entries []*entry, parts int, list List, err error) {
	l := c.lister(ctx, st, func(e *entry) bool {
		if !e.own { // others of the same list may not see it
			entries = append(entries, e)
		}
		return ctx.Err() == nil
	})
	l.strict = true
	if err := l.walk(c.Paths); err != nil {
		return nil, 0, List{}, err
	}
	list.Inputs = len(entries)
	all := workOf(entries)
	parts = count(all)
	if parts > 1 {
		const least = 1 << 20 // less is not worth to be split
		if entries, err = splitZips(ctx, st, entries, max(all/int64(parts), least)); err != nil {
			return nil, 0, List{}, err
		}
	}
	list.Digest, list.Parts = digest(entries), len(entries)
	return entries, parts, list, nil
}

// A part is what one shard or piece has to do.
type part struct {
	entries []*entry
	work    int64
}

// A pile holds the parts while entries are dealt out: the one with least work is on top.
type pile []int

type dealer struct {
	pile
	parts []part
}

func (d *dealer) Len() int      { return len(d.pile) }
func (d *dealer) Swap(i, j int) { d.pile[i], d.pile[j] = d.pile[j], d.pile[i] }
func (d *dealer) Push(any)      {}
func (d *dealer) Pop() any      { return nil }
func (d *dealer) Less(i, j int) bool {
	a, b := d.pile[i], d.pile[j]
	return cmp.Or(cmp.Compare(d.parts[a].work, d.parts[b].work), cmp.Compare(a, b)) < 0
}

// deal deals entries out to n parts of about equal work: the largest first, each to the part
// that has least. Within a part they stay in the order of the list.
func deal(entries []*entry, n int) []part {
	byWork := slices.Clone(entries)
	slices.SortStableFunc(byWork, func(a, b *entry) int { return cmp.Compare(b.work(), a.work()) })
	d := &dealer{parts: make([]part, n), pile: make(pile, n)}
	for i := range d.pile {
		d.pile[i] = i
	}
	for _, e := range byWork {
		p := &d.parts[d.pile[0]]
		p.entries = append(p.entries, e)
		p.work += e.work()
		heap.Fix(d, 0)
	}
	for i := range d.parts {
		slices.SortStableFunc(d.parts[i].entries, inOrder)
	}
	return d.parts
}

func inOrder(a, b *entry) int {
	from := func(e *entry) int {
		if e.Members == nil {
			return 0
		}
		return e.Members.From
	}
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(from(a), from(b)))
}

func workOf(entries []*entry) (sum int64) {
	for _, e := range entries {
		sum += e.work()
	}
	return sum
}

// splitZips replaces zips that hold more work than most by runs of their members. Only their
// directories are read.
func splitZips(ctx context.Context, s *stores, entries []*entry, most int64) ([]*entry, error) {
	var out []*entry
	for _, e := range entries {
		if e.work() <= most || e.Skip != "" || e.Refused != "" || e.pipe || !zipName(cmp.Or(e.Key, e.Path)) {
			out = append(out, e)
			continue
		}
		parts, err := splitZip(ctx, s, e, most)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		out = append(out, parts...)
	}
	return out, nil
}

func splitZip(ctx context.Context, s *stores, e *entry, most int64) ([]*entry, error) {
	sizes, err := zipSizes(ctx, s, e)
	if err != nil {
		return nil, err
	}
	var out []*entry
	from, size := 0, int64(0)
	for i, n := range sizes {
		size += n + perTrace
		if i+1 < len(sizes) && size+sizes[i+1]+perTrace <= most {
			continue
		}
		x := &entry{Index: e.Index, Name: e.Name, Out: e.Out, Prefix: e.Prefix, Path: e.Path, Bucket: e.Bucket, Key: e.Key, Size: e.Size, Version: e.Version}
		x.Members, x.Share = &span{from, i + 1, len(sizes)}, size-int64(i+1-from)*perTrace
		out = append(out, x)
		from, size = i+1, 0
	}
	if len(out) < 2 {
		return []*entry{e}, nil
	}
	return out, nil
}

// zipSizes are the stored sizes of a zip's members; none if it is not a zip or a broken one,
// which whoever works on it tells.
func zipSizes(ctx context.Context, s *stores, e *entry) ([]int64, error) {
	z, closeZip, err := openDirectory(ctx, s, e)
	if err != nil {
		if errors.Is(err, errNoZip) {
			return nil, nil
		}
		return nil, err
	}
	defer closeZip()
	sizes := make([]int64, len(z.File))
	for i, f := range z.File {
		sizes[i] = max(int64(f.CompressedSize64), 0)
	}
	return sizes, nil
}

// digest identifies a list that was split: its names, sizes, and how zips in it were split.
func digest(entries []*entry) string {
	sum := sha256.New()
	for _, e := range entries {
		e.addTo(sum)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (e *entry) addTo(sum io.Writer) {
	if e.own {
		return
	}
	fmt.Fprintf(sum, "%q %d", e.Name, e.Size)
	if m := e.Members; m != nil {
		fmt.Fprintf(sum, " %d-%d", m.From, m.To)
	}
	io.WriteString(sum, "\n")
}
