package batch

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tracefix/tracefix/internal/report"
	"github.com/tracefix/tracefix/internal/text"
)

// Progress tells people how far a batch is. The zero value tells nobody.
type Progress struct {
	// Out is told; nil for none.
	Out io.Writer
	// Live redraws one line on a terminal. Else a line is added every minute.
	Live bool
	// Width is that of the terminal.
	Width int
	// Every is the time between lines; zero means a fifth of a second, or a minute.
	Every time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu      sync.Mutex
	started time.Time
	bytes   int64 // done
	total   int64 // known so far
	whole   bool  // total is that of everything
	counts  [4]int
	resumed int
	running map[int]string
	last    string // the latest failure
	drawn   bool
}

const (
	doneOK = iota
	doneDamaged
	doneFailed
	doneSkipped
)

func (p *Progress) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// Start begins to tell. stop ends it, and leaves the terminal clean.
func (p *Progress) Start() (stop func()) {
	p.mu.Lock()
	p.started = p.now()
	p.mu.Unlock()
	if p.Out == nil {
		return func() {}
	}
	every := p.Every
	if every == 0 {
		every = time.Minute
		if p.Live {
			every = 200 * time.Millisecond
		}
	}
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				p.draw()
			}
		}
	}()
	return func() {
		close(done)
		<-finished
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.drawn && p.Live {
			fmt.Fprint(p.Out, "\r\x1b[K")
		}
	}
}

func (p *Progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := text.Line(p.line())
	if p.Live {
		width := p.Width
		if width <= 0 {
			width = 80
		}
		fmt.Fprintf(p.Out, "\r\x1b[K%s", cutLine(line, width-1))
		p.drawn = true
		return
	}
	fmt.Fprintln(p.Out, line)
}

func cutLine(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:max(width-1, 0)]) + "…"
}

// Line is the state in one line.
func (p *Progress) Line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line()
}

// Done says how many traces are done, without what is at work: for a batch that ended.
func (p *Progress) Done() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done()
}

func (p *Progress) done() string {
	c := p.counts
	var b strings.Builder
	fmt.Fprintf(&b, "%s done", report.Count(c[doneOK]+c[doneDamaged]))
	if p.resumed > 0 {
		fmt.Fprintf(&b, " (%s before)", report.Count(p.resumed))
	}
	if c[doneDamaged] > 0 {
		fmt.Fprintf(&b, ", %s damaged", report.Count(c[doneDamaged]))
	}
	if c[doneFailed] > 0 {
		fmt.Fprintf(&b, ", %s failed", report.Count(c[doneFailed]))
	}
	if c[doneSkipped] > 0 {
		fmt.Fprintf(&b, ", %s skipped", report.Count(c[doneSkipped]))
	}
	return b.String()
}

func (p *Progress) line() string {
	var b strings.Builder
	b.WriteString(p.done())
	fmt.Fprintf(&b, "  %s", size(p.bytes))
	if p.whole && p.total > 0 {
		fmt.Fprintf(&b, " of %s", size(p.total))
	}
	if s := p.now().Sub(p.started).Seconds(); s > 0.5 && p.bytes > 0 {
		rate := float64(p.bytes) / s
		fmt.Fprintf(&b, "  %s/s", size(int64(rate)))
		if left := p.total - p.bytes; p.whole && left > 0 {
			eta := time.Duration(float64(left) / rate * float64(time.Second))
			fmt.Fprintf(&b, "  ETA %s", eta.Round(time.Second))
		}
	}
	if p.last != "" {
		fmt.Fprintf(&b, "  last failure: %s", p.last)
	} else if name := p.oldest(); name != "" {
		fmt.Fprintf(&b, "  %s", name)
	}
	return b.String()
}

// oldest is the trace that is at work the longest, in the order of the list.
func (p *Progress) oldest() string {
	best := -1
	for i := range p.running {
		if best < 0 || i < best {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return p.running[best]
}

// Measure adds up how many bytes the files and folders of paths hold, for the ETA.
// Archives count as they are stored. Paths of other kinds add what they find later.
func (p *Progress) Measure(paths []string) {
	var n int64
	whole := true
	for _, path := range paths {
		if path == "-" || isURL(path) {
			whole = false
			continue
		}
		if _, err := os.Stat(path); err != nil && hasMeta(path) {
			whole = false
			continue
		}
		filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // the walk itself reports it
			}
			if d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
				return filepath.SkipDir
			}
			if st, err := d.Info(); err == nil && st.Mode().IsRegular() {
				n += st.Size()
			}
			return nil
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += n
	p.whole = whole
}

func (p *Progress) addTotal(n int64) {
	p.mu.Lock()
	p.total += n
	p.mu.Unlock()
}

func (p *Progress) credit(n int64) {
	p.mu.Lock()
	p.bytes += n
	p.mu.Unlock()
}

func (p *Progress) began(it *item) {
	p.mu.Lock()
	if p.running == nil {
		p.running = map[int]string{}
	}
	p.running[it.index] = it.name
	p.mu.Unlock()
}

// ended counts a result.
func (p *Progress) ended(it *item, r *Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, it.index)
	p.bytes += it.credit
	if r.resumed {
		p.resumed++
	}
	switch r.Status {
	case Failed:
		p.counts[doneFailed]++
		p.last = r.Input.Name + ": " + r.Error
	case Damaged:
		p.counts[doneDamaged]++
	case Skipped:
		p.counts[doneSkipped]++
	default:
		p.counts[doneOK]++
	}
}
