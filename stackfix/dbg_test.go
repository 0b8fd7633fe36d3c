package stackfix

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestDbg(t *testing.T) {
	dir := labDir(t)
	f := os.Getenv("ONLY")
	n, _ := strconv.Atoi(os.Getenv("N"))
	names := os.Getenv("MODE") == "names"
	r, err := load(dir+"/"+f+".json", names)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(f, "v6") {
		r.markV6()
	} else {
		r.cutTo(n)
	}
	e := newEngine(r, Options{Bridge: r.bridge})
	w := e.load(r.tree, r.threads)
	v := e.virtual(w, e.virtualLimit(w))
	fmt.Println("virtual limit", v.limit)
	show := 12
	debugWrong = func(s *solver, blk *block, c *cand, cell int) {
		a, b, d, g := cellParts(cell)
		k := fmt.Sprintf("rec%d votes%d sides%d bits%d", a, b, d, g)
		if k != os.Getenv("CELL") || show == 0 {
			return
		}
		show--
		nm := func(s StackID) []string {
			var out []string
			for _, f := range e.t.AppendFrames(nil, s) {
				out = append(out, r.methods[r.frame[f]])
			}
			return out
		}
		fmt.Println("whole", blk.whole, "truth", e.t.Depth(blk.truth), "stack", e.t.Depth(blk.stack), "ext", e.t.Depth(blk.ext), "got", c.depth, "votes", c.votes, c.share, "kf", c.kf, "kb", c.kb)
		tn := nm(blk.truth)
		fmt.Println("   truth", strings.Join(short(tn), " > "))
		fmt.Println("   got", strings.Join(short(nm(c.p)), " > "), "  |  ", strings.Join(short(nm(blk.ext)), " > "))
	}
	s := solver{engine: e, world: v, learn: true}
	s.solve()
}
