package command

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tracefix/tracefix/internal/text"
)

// droppedRequests remembers what there was, for who asks for what there is not.
type droppedRequests struct {
	cmd     *HTTP
	kept    bool      // the filters keep a request
	rows    []httpRow // the first of those that they drop, until they keep one
	longest int64     // ns
	last    int       // id
}

// see takes a request of the sides that are asked for.
func (d *droppedRequests) see(row httpRow, kept bool) {
	const enough = 1000
	d.kept = d.kept || kept
	if d.kept {
		return
	}
	f := row.facts()
	d.longest, d.last = max(d.longest, f.duration), max(d.last, f.id)
	if len(d.rows) < enough {
		d.rows = append(d.rows, row)
	}
}

// tell notes in the report of c what there is, if the filters drop all.
func (d *droppedRequests) tell(ctx context.Context, c *Call) {
	if d.kept || len(d.rows) == 0 {
		return
	}
	h := d.cmd
	filters := asked{WhoFlags: h.WhoFlags, TimeFlags: h.TimeFlags, WorkFlags: WorkFlags{ActivityFlag: h.ActivityFlag}}
	what := filters.dropAll(ctx, c)
	if h.From != 0 || h.To != 0 {
		first, last := int64(math.MaxInt64), int64(0)
		for _, r := range d.rows {
			f := r.facts()
			first, last = min(first, f.start), max(last, f.start+f.duration)
		}
		what += fmt.Sprintf(", its first requests from %v to %v", time.Duration(first).Round(time.Millisecond), time.Duration(last).Round(time.Millisecond))
	}
	if h.Slow > 0 {
		what += fmt.Sprintf("; the longest took %v", time.Duration(d.longest).Round(time.Microsecond))
	}
	if len(h.ID)+len(idsIn(h.Request)) > 0 {
		what += fmt.Sprintf("; its ids end with %d", d.last)
		if h.Side != "both" && !h.Summary {
			what += "; those of the other side are with --side both"
		}
	}
	list := func(wanted []string, kind string, name func(httpRow) string) {
		if len(wanted) == 0 {
			return
		}
		var names []string
		for _, r := range d.rows {
			if n := name(r); n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		what += anyNearest(wanted, names, kind)
	}
	host, wrong := h.Host, false
	for _, r := range d.rows {
		wrong = wrong || r.facts().status >= 400
		if host != nil && text.List(host).Match(r.hostNames()...) {
			host = nil // it is not what drops them
		}
	}
	if h.Failed && wrong {
		what += "; --status 400-599 keeps answers that tell an error"
	}
	list(host, "hosts", func(r httpRow) string {
		if names := r.hostNames(); len(names) > 1 {
			return names[1]
		}
		return ""
	})
	if len(idsIn(h.Request)) < len(h.Request) {
		list(h.Request, "requests", httpRow.url)
	}
	list(h.Status, "answers", func(r httpRow) string {
		if s := r.facts().status; s != 0 {
			return strconv.Itoa(s)
		}
		return ""
	})
	c.Report.Notes = append(c.Report.Notes, what)
}
