package info

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/tracefix/tracefix/internal/text"
)

// wrong takes a problem into v: a share (0 to 1) of more than half is bad, and one of no
// more than tolerable is none.
func (v *Verdict) wrong(share, tolerable float64, problem string) {
	switch {
	case share <= tolerable:
		return
	case share >= 0.5:
		v.State = Bad
	default:
		v.State = Partly
	}
	v.Problem, v.Share = problem, math.Round(share*1e4)/100
}

// severity orders states for people: what is wrong first.
var severity = map[string]int{Bad: 3, Partly: 2, Good: 1, None: 0}

// toldProblems is how many problems the one verdict of all names.
const toldProblems = 3

// sumUp puts the verdicts in order and makes one of them.
func (f *Facts) sumUp() {
	text.SortRows(f.Verdicts, func(a, b *Verdict) int {
		return cmp.Or(cmp.Compare(severity[b.State], severity[a.State]), cmp.Compare(b.Share, a.Share))
	})
	all := Verdict{State: Good}
	var problems, good []string
	for _, v := range f.Verdicts {
		switch {
		case v.Problem != "":
			problems = append(problems, v.Problem)
			if len(problems) == 1 {
				all.State, all.Share = v.State, v.Share
			}
		case v.State == Good && v.of != "":
			good = append(good, v.of)
		}
	}
	switch {
	case len(problems) > toldProblems:
		all.Text = fmt.Sprintf("%s; and %d more", strings.Join(problems[:toldProblems], "; "), len(problems)-toldProblems)
	case len(problems) > 0:
		all.Text = strings.Join(problems, "; ")
	case len(good) > 0:
		all.Text = strings.Join(good, ", ") + " can be used as they are"
	case f.Events == 0 && len(f.Threads) == 0:
		all.State, all.Text = None, "the file holds nothing to look at"
	default:
		all.Text = "nothing is wrong, but it holds no CPU stacks, requests, activities or counters"
	}
	f.Overall = all
}

// text tells a repair would do with the cut stacks.
func (f *Forecast) text() string {
	if f == nil || f.Tried == 0 {
		return ""
	}
	share := percentOf(f.Repaired, f.Tried)
	if f.All {
		return fmt.Sprintf("a repair restores %s of them", share)
	}
	return fmt.Sprintf("a repair restores about %s of them (tried on %s)", share, count(f.Tried))
}
