package command

import (
	"context"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/internal/requests"
	"github.com/tracefix/tracefix/profile"
)

// An ActivityFlag says which activities are wanted.
type ActivityFlag struct {
	Activity []string `placeholder:"NAME|PATH" help:"Keep only these activities and those inside them: [Provider/]Name, a path such as //1/2, or a GUID; * and ? are wildcards. Processes may have the same paths and GUIDs: --process keeps one."`
}

// WorkFlags say whose work is wanted.
type WorkFlags struct {
	ActivityFlag
	Request []string `placeholder:"ID|URL" help:"Keep only what belongs to these HTTP requests: the id that http shows, a URL or its path; * and ? are wildcards."`
}

// ids returns the ids of all activities that the flags ask for, nil where they ask for none in
// particular. It reads the trace: what is below an activity is known at its end.
func (f WorkFlags) ids(ctx context.Context, c *Call) (*activity.IDSet, error) {
	if len(f.Activity)+len(f.Request) == 0 {
		return nil, nil
	}
	rows, _, err := requests.Activities(ctx, c.In, nil)
	if err != nil {
		return nil, err
	}
	asked, err := f.rows(ctx, c, rows)
	if err != nil {
		return nil, err
	}
	ids := rows.IDs(asked)
	return ids, rows.Err()
}

// rows tells which rows the flags ask for, nil where they ask for none in particular.
func (f WorkFlags) rows(ctx context.Context, c *Call, rows *activity.Rows) (*activity.RowSet, error) {
	if len(f.Activity)+len(f.Request) == 0 {
		return nil, nil
	}
	asked, err := f.requests(ctx, c)
	if err != nil {
		return nil, err
	}
	type kind struct{ provider, name string }
	m, kinds := profile.NewActivityMatcher(f.Activity), map[kind]bool{}
	in := rows.Below(func(_ int, r *activity.Row) bool {
		k := kind{r.Provider, r.Name}
		is, ok := kinds[k]
		if !ok {
			is = m.Name(r.Provider, r.Name)
			if len(kinds) < mostNames { // most traces have few, and some a name for each activity
				kinds[k] = is
			}
		}
		if is || asked.Has(r.Process, r.ID) || m.ID(r.ID) {
			return true
		}
		if !m.HasPaths() {
			return false
		}
		p, ok := rows.Path(r)
		return ok && m.Path(p.Process(), p.String())
	})
	return in, rows.Err()
}

// requests returns the activities of the requests that are asked for, of both sides.
func (f WorkFlags) requests(ctx context.Context, c *Call) (*activity.IDSet, error) {
	if len(f.Request) == 0 {
		return nil, nil
	}
	ids := activity.NewIDSet(0)
	err := eachRequest(ctx, c, func(r httpRow) {
		if q := r.facts(); !q.activity.IsZero() && profile.MatchRequest(f.Request, q.id, r.url()) {
			ids.Add(q.process, q.activity)
		}
	})
	return ids, err
}

// eachRequest reads the requests of both sides.
func eachRequest(ctx context.Context, c *Call, each func(httpRow)) error {
	_, err := scanned(ctx, c, func(*requests.Scanner) {}, each)
	return err
}
