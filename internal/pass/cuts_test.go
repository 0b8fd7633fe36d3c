package pass

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var allCuts = flag.Bool("cuts", false, "cut recordings at 20 to 70 frames, for the figures of docs/repair.md: takes minutes")

// otherRows are recordings beside realRows that have whole stacks deep enough to be cut.
var otherRows = []string{
	"dotnet10/web.nettrace", "dotnet10/http-cpu.nettrace", "dotnet10/csc.nettrace", "dotnet10/library.nettrace", "dotnet10/noise.nettrace",
	"nettrace/pyroscope-io-dotnetdiag/dotnet-5.0-SampleProfiler-webapp.golden.nettrace.gz",
}

var cutLimits = []int{20, 30, 40, 55, 70}

// TestTruthCuts prints what becomes of sixteen recordings whose whole stacks are cut to 20, 30, 40,
// 55 and 70 frames, by addresses and by names alone, of the ten real programs and of all. Cuts of
// which fewer than 100 samples can be judged do not count. A whole stack that is just as deep as
// the limit looks cut, and a few are made longer.
func TestTruthCuts(t *testing.T) {
	if !*allCuts {
		t.Skip("takes minutes: run with -cuts")
	}
	var rows []string
	for _, name := range realRows {
		rows = append(rows, "real/"+name+".nettrace.zst")
	}
	rows = append(rows, otherRows...)
	for _, namesOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("names=%t", namesOnly), func(t *testing.T) {
			var exact, wrong, most float64
			n, over, longer := 0, 0, 0
			for i, file := range rows {
				for _, limit := range cutLimits {
					r := loadRecording(t, corpus+file, namesOnly)
					truth := r.cutTo(limit)
					sc, _ := r.scoreCut(truth, r.fix(), limit, 100)
					name, _, _ := strings.Cut(filepath.Base(file), ".nettrace")
					t.Logf("%s@%d %v", name, limit, sc)
					assert.Zero(t, sc.deleted, "nothing is deleted")
					if sc.judged < 100 {
						continue
					}
					n++
					longer += sc.wholeChanged
					exact, wrong, most = exact+sc.pct(sc.exact), wrong+sc.pct(sc.wrong), math.Max(most, sc.pct(sc.wrong))
					if sc.pct(sc.wrong) >= 1 {
						over++
					}
				}
				if i == len(realRows)-1 || i == len(rows)-1 {
					t.Logf("MEAN of %d cuts of %d recordings: exact %.2f wrong %.2f, most %.2f, 1 %% and more in %d; %d whole samples changed", n, i+1, exact/float64(n), wrong/float64(n), most, over, longer)
				}
			}
		})
	}
}
