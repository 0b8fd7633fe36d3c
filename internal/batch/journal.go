package batch

import (
	"bytes"
	"encoding/json" // reads what a killed run left: bytes that may be broken
	"io"

	"github.com/tracefix/tracefix/internal/report"
)

// A journal line. Begin stands before an output can appear, Done after it has.
type entry struct {
	Begin string  `json:"begin,omitempty"` // output's name
	Done  *record `json:"done,omitempty"`
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
}

// A journal is what earlier runs into the same folder did. It is append-only text:
// one JSON line for each fact, and a line that a kill cut short is no fact.
type journal struct {
	done  map[string]*record
	begun map[string]bool // outputs that are ours, finished or not
	tries map[string]int  // how often outputs were begun and not finished
}

func newJournal() *journal {
	return &journal{map[string]*record{}, map[string]bool{}, map[string]int{}}
}

// load adds the lines of r. Lines that are not whole are left out.
func (j *journal) load(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		var e entry
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Begin != "" {
			j.begun[e.Begin] = true
			j.tries[e.Begin]++
		}
		if d := e.Done; d != nil && d.Out != "" && d.Trace != nil {
			j.begun[d.Out] = true
			j.done[d.Out] = d
			delete(j.tries, d.Out)
		}
	}
	return nil
}

func (e entry) line() ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}
