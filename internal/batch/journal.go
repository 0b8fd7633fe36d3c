package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json" // reads what a killed run left: bytes that may be broken
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"

	"github.com/tracefix/tracefix/internal/report"
)

// A fact is a line of a journal. The empty one says that a run begins.
type fact struct {
	// Begin is an output whose trace is at work from here on, or an archive whose members
	// are: it stands in the journal before anything is done about it.
	Begin string `json:"begin,omitempty"`
	In    string `json:"in,omitempty"` // the archive, of a member that begins
	// At is the place of a member that begins in its archive; of an archive, that of the furthest one that began.
	At int `json:"at,omitempty"`
	// There says that the output is there, and may be somebody else's until it is done.
	There bool `json:"there,omitempty"`
	// In a compacted journal: how often it was at work when a run died, and how often that was
	// with a member of it at work.
	Times  int `json:"times,omitempty"`
	Within int `json:"within,omitempty"`
	// Done is what was made.
	Done *record `json:"done,omitempty"`
	// Pass is an archive that opened, and whose members come that are done: what dies now does not die of it.
	Pass string `json:"pass,omitempty"`
	// End is what was begun and left nothing to keep: it failed, or was an archive.
	End string `json:"end,omitempty"`
	// Stop says that the run ended by itself: what was at work did not kill it.
	Stop bool `json:"stop,omitempty"`
}

// A record says what an output was made of, and how.
type record struct {
	Out     string        `json:"out"`     // output's name; it tells records apart
	Content string        `json:"content"` // SHA-256 of the input's stored bytes
	Version string        `json:"version,omitempty"`
	Options string        `json:"options"` // hash of all that shapes an output
	Size    int64         `json:"size"`    // of the output
	SHA256  string        `json:"sha256"`  // of the output; of nothing if none was written
	Skip    string        `json:"skip,omitempty"`
	Trace   *report.Trace `json:"trace"`

	// Of an object that is an archive and done as a whole, what there is in it: it need not be
	// asked for again. Span says which members, if not all.
	Members []memberRecord `json:"members,omitempty"`
	Span    *span          `json:"span,omitempty"`
}

// A memberRecord is a member of an archive: it has a record of its own, or was left out.
type memberRecord struct {
	Member int    `json:"member,omitempty"`
	Seq    int    `json:"seq,omitempty"`
	Name   string `json:"name"` // behind that of the archive
	Out    string `json:"out,omitempty"`
	Skip   string `json:"skip,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"` // as stored
}

// A journal is what earlier runs into the same folder did. It is append-only text:
// one JSON line for each fact, and a line that a kill cut short, or that is not what was written, is
// no fact.
type journal struct {
	done  map[string]*record
	begun map[string]bool // outputs that are ours, finished or not
	// tries tells how many runs died with an output at work; of an archive, with a member
	// of it at work, or while its members were found.
	tries map[string]int
	// inside tells how many of an archive's were with a member of it at work.
	inside map[string]int
	far    map[string]int // of an archive, the furthest place where a member of it was at work

	open  map[string]string // what the run that is read began and did not finish, and its archive
	lines int
}

func newJournal() *journal {
	return &journal{done: map[string]*record{}, begun: map[string]bool{}, tries: map[string]int{}, inside: map[string]int{}, far: map[string]int{}, open: map[string]string{}}
}

// load adds the lines of r, which are the next ones of the same journal. Lines that are not
// whole are left out.
func (j *journal) load(r io.Reader) error {
	b := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := b.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var f fact
		if line = bytes.TrimSpace(line); unhurt(line) && json.Unmarshal(line, &f) == nil {
			j.add(&f)
		}
	}
}

// end ends a run, or a journal: what comes next is another one's. It blames members for what
// happened to their archives.
func (j *journal) end() {
	in := map[string]bool{}
	for _, archive := range j.open {
		if archive != "" && !in[archive] {
			in[archive] = true
			j.inside[archive]++
			if _, blamed := j.open[archive]; !blamed { // it was passed over
				j.tries[archive]++
			}
		}
	}
	clear(j.open)
}

// merge adds what another journal says of its own outputs.
func (j *journal) merge(o *journal) {
	maps.Copy(j.done, o.done)
	maps.Copy(j.begun, o.begun)
	maps.Copy(j.tries, o.tries)
	maps.Copy(j.inside, o.inside)
	maps.Copy(j.far, o.far)
}

func (j *journal) add(f *fact) {
	j.lines++
	if at := cmp.Or(f.In, f.Begin); f.At > j.far[at] {
		j.far[at] = f.At
		// Runs that died between members of an archive did not die at one place of it if one gets further.
		if n := j.inside[at] + 1; f.In != "" && j.tries[at] > n {
			j.tries[at] = n
		}
	}
	switch d := f.Done; {
	case f.Times > 0:
		j.begun[f.Begin] = true
		j.tries[f.Begin], j.inside[f.Begin] = f.Times, f.Within
	case f.Begin != "":
		if !f.There {
			j.begun[f.Begin] = true
		}
		if _, again := j.open[f.Begin]; !again {
			j.open[f.Begin] = f.In
			j.tries[f.Begin]++
		}
	case d != nil && d.Out != "" && d.Trace != nil:
		j.begun[d.Out] = true
		j.done[d.Out] = d
		j.finish(d.Out)
	case f.End != "":
		j.finish(f.End)
	case f.Pass != "":
		j.acquit(f.Pass)
	case f.Stop:
		for out := range j.open {
			j.acquit(out)
		}
	default:
		j.end()
	}
}

// acquit takes back that a run began with out, if it did.
func (j *journal) acquit(out string) {
	if _, begun := j.open[out]; !begun {
		return
	}
	delete(j.open, out)
	if j.tries[out]--; j.tries[out] <= 0 {
		delete(j.tries, out)
	}
}

func (j *journal) finish(out string) {
	delete(j.tries, out)
	delete(j.inside, out)
	delete(j.open, out)
}

// short are lines that say the same as all that were read.
func (j *journal) short() (all []byte, err error) {
	say := func(f fact) {
		b, ferr := f.line()
		all, err = append(all, b...), cmp.Or(err, ferr)
	}
	say(fact{})
	for _, out := range slices.Sorted(maps.Keys(j.done)) {
		say(fact{Done: j.done[out]})
	}
	for _, out := range slices.Sorted(maps.Keys(j.begun)) {
		n := j.tries[out]
		switch {
		case n > 0:
			say(fact{Begin: out, Times: n, Within: j.inside[out], At: j.far[out]})
		case j.done[out] == nil: // that it is ours
			say(fact{Begin: out, At: j.far[out]})
			say(fact{End: out})
		}
	}
	return all, err
}

// swollen reports whether a journal has far more lines than it needs.
func (j *journal) swollen() bool { return j.lines > 64+2*(len(j.done)+len(j.tries)) }

func (f fact) line() ([]byte, error) {
	b, err := json.Marshal(f)
	if err != nil || f == (fact{}) {
		return append(b, '\n'), err
	}
	b = b[:len(b)-1]
	return fmt.Appendf(b, sumForm+"\n", crc32.ChecksumIEEE(b)), nil
}

// sumForm is how a line ends: with the checksum of what is before that. Lines of older versions have none.
const sumForm = `,"sum":"%08x"}`

// unhurt reports whether a line is what was written.
func unhurt(line []byte) bool {
	at := len(line) - len(`,"sum":"01234567"}`)
	return at < 0 || !bytes.HasPrefix(line[at:], []byte(`,"sum":"`)) || string(line[at:]) == fmt.Sprintf(sumForm, crc32.ChecksumIEEE(line[:at]))
}

func lines(facts ...fact) ([]byte, error) {
	var all []byte
	for _, f := range facts {
		b, err := f.line()
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}
