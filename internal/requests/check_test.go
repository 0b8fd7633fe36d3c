package requests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/input"
	"github.com/tracefix/tracefix/internal/tracetest"
	"github.com/tracefix/tracefix/nettrace"
)

func open(t testing.TB, path string) *input.File {
	t.Helper()
	in, err := input.Open(t.Context(), path, nil)
	require.NoError(t, err)
	t.Cleanup(func() { in.Close() })
	return in
}

// A recording is what a file holds, decoded.
type recording struct {
	events []httpphases.Event
	lost   []nettrace.Loss
	rows   []*httpphases.Request
	served []*httpphases.ServerRequest
	scan   *Scanner
	info   *Info
	need   Need
	nanos  func(qpc int64) int64
}

func loadFile(t testing.TB, path string) *recording {
	t.Helper()
	rec := &recording{}
	var reader *nettrace.Reader
	var ids activity.Decoder
	info, err := Read(context.Background(), open(t, path), func(r *nettrace.Reader) {
		reader = r
		rec.scan = NewScanner(r, func(q *httpphases.Request) { rec.rows = append(rec.rows, q); rec.need.Request(q) },
			func(s *httpphases.ServerRequest) { rec.served = append(rec.served, s) })
	}, func(ev *nettrace.Event) {
		rec.scan.Event(ev)
		var e httpphases.Event
		if rec.scan.decode(&e, ev) {
			setPath(&ids, &e)
			rec.events = append(rec.events, e)
		}
	})
	require.NoError(t, err)
	rec.scan.Finish()
	rec.info, rec.lost, rec.nanos = info, reader.Losses(), reader.Nanos
	return rec
}

// lostEvents lie between a time and the event of the same thread that shows the loss.
type lostEvents struct{ after int64 }

// run builds requests of events. lost is what is told to be missing before an event.
func run(events []httpphases.Event, lost map[int]lostEvents) []*httpphases.Request {
	var rows []*httpphases.Request
	b := httpphases.NewBuilder(&httpphases.Options{Request: func(r *httpphases.Request) { rows = append(rows, r) }})
	end := int64(0)
	for i := range events {
		if l, ok := lost[i]; ok {
			b.Lost(events[i].Process, events[i].Thread, l.after, events[i].Time)
		}
		b.Add(&events[i])
		end = max(end, events[i].Time)
	}
	b.Finish(end)
	return rows
}

func isNested(n httpphases.PhaseName) bool {
	return n == httpphases.DNS || n == httpphases.Connect || n == httpphases.Proxy || n == httpphases.TLS
}

// violation checks what http-events.md section 9 demands of every row.
func violation(r *httpphases.Request) error {
	end := r.Start + r.Duration
	if !r.HasDuration {
		if r.Outcome != httpphases.Incomplete {
			return fmt.Errorf("%s without duration", r.Outcome)
		}
		end = 1 << 62
	}
	if r.Duration < 0 {
		return fmt.Errorf("negative duration %d", r.Duration)
	}
	if r.Outcome != httpphases.OK && r.Outcome != httpphases.Incomplete && r.Error == "" {
		return fmt.Errorf("%s without error", r.Outcome)
	}
	check := func(list []httpphases.Phase, from, to int64) error {
		last := from
		inner := from
		for i := range list {
			p := &list[i]
			if p.Open {
				if r.Outcome != httpphases.Incomplete {
					return fmt.Errorf("%s is open in a row that is %s", p.Name, r.Outcome)
				}
				if p.Start < from || p.Start > to {
					return fmt.Errorf("%s begins outside", p.Name)
				}
				continue
			}
			if p.Duration < 0 {
				return fmt.Errorf("%s lasts %d", p.Name, p.Duration)
			}
			if p.Start < from || p.End() > to {
				return fmt.Errorf("%s %d..%d outside of %d..%d", p.Name, p.Start, p.End(), from, to)
			}
			if i > 0 && p.Start < list[i-1].Start {
				return fmt.Errorf("%s is not in order of time", p.Name)
			}
			if isNested(p.Name) {
				if p.Start < inner {
					return fmt.Errorf("%s overlaps another step of the connection", p.Name)
				}
				inner = p.End()
				// Outside of a queue only what has none beside it.
				for k := range list {
					if q := &list[k]; !isNested(q.Name) && q.Name != httpphases.Queue && !q.Open && p.Start < q.End() && q.Start < p.End() {
						return fmt.Errorf("%s overlaps %s", p.Name, q.Name)
					}
				}
				continue
			}
			if p.Start < last {
				return fmt.Errorf("%s begins at %d, before the end of the phase before it at %d", p.Name, p.Start, last)
			}
			last = p.End()
		}
		return nil
	}
	if err := check(r.Phases, r.Start, end); err != nil {
		return err
	}
	for i := range r.Redirects {
		d := &r.Redirects[i]
		if err := check(d.Phases, d.Start, d.Start+d.Duration); err != nil {
			return fmt.Errorf("redirect %d: %w", i, err)
		}
	}
	if r.HasDuration {
		sum := int64(0)
		at := r.Start
		for _, s := range r.Partition() {
			if s.Start != at || s.Duration < 0 {
				return fmt.Errorf("partition has a hole at %d", at)
			}
			at = s.End()
			sum += s.Duration
		}
		if sum != r.Duration {
			return fmt.Errorf("partition sums to %d of %d", sum, r.Duration)
		}
		if times := r.Times(); times.Sum() != r.Duration && !r.SpanOnly {
			return fmt.Errorf("times sum to %d of %d: %+v", times.Sum(), r.Duration, times)
		}
	}
	return nil
}

// recordings are those of the corpus and the one that is part of the project.
func recordings(t *testing.T, f func(t *testing.T, name string, rec *recording)) {
	t.Helper()
	t.Run("testdata", func(t *testing.T) {
		f(t, "http-more", loadFile(t, filepath.Join("testdata", "http-more.nettrace.zst")))
	})
	for _, name := range []string{"http-full", "http-net8", "http-net9", "http-bridge", "http-attach", "http-notpl", "dropped"} {
		t.Run(name, func(t *testing.T) {
			f(t, name, loadFile(t, tracetest.Corpus(t, "dotnet10", name+".nettrace")))
		})
	}
}

func TestInvariants(t *testing.T) {
	recordings(t, func(t *testing.T, name string, rec *recording) {
		require.NotEmpty(t, rec.rows)
		for _, r := range rec.rows {
			assert.NoError(t, violation(r), "request %d, %s", r.ID, r.URL())
		}
		if name == "dropped" {
			assert.NotZero(t, rec.info.Lost)
			return
		}
		assert.Zero(t, rec.info.Lost)
		for _, r := range rec.rows {
			assert.Empty(t, r.Missing, "request %d, %s", r.ID, r.URL())
		}
	})
}

func key(r *httpphases.Request) string { return fmt.Sprint(r.Start, " ", r.URL()) }

// inWords prints what r tells, for comparison.
func inWords(r *httpphases.Request) string {
	c := *r
	c.ID, c.Server, c.Connection, c.Redirects = 0, 0, nil, nil
	s := fmt.Sprintf("%+v", c)
	if r.Connection != nil {
		s += fmt.Sprintf("%+v", *r.Connection)
	}
	for _, d := range r.Redirects {
		d.Connection = nil
		s += fmt.Sprintf("%+v", d)
	}
	return s[strings.Index(s, "Method"):]
}

// Events that come late, as they do between the buffers of two threads, change nothing.
func TestReordered(t *testing.T) {
	recordings(t, func(t *testing.T, name string, rec *recording) {
		if name == "dropped" || name == "http-attach" {
			t.Skip("one is enough")
		}
		r := rand.New(rand.NewPCG(7, 7))
		mixed := append([]httpphases.Event(nil), rec.events...)
		for i := range mixed {
			j := min(i+r.IntN(200), len(mixed)-1)
			mixed[i], mixed[j] = mixed[j], mixed[i]
		}
		// Equal times keep no order when they are torn apart: put them back.
		at := map[int64][]int{}
		for i := range rec.events {
			at[rec.events[i].Time] = append(at[rec.events[i].Time], i)
		}
		for i := range mixed {
			l := at[mixed[i].Time]
			mixed[i] = rec.events[l[0]]
			at[mixed[i].Time] = l[1:]
		}
		want, got := run(rec.events, nil), run(mixed, nil)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, inWords(want[i]), inWords(got[i]))
		}
	})
}

// Whatever is lost: rows keep the invariants, and what a row tells without being
// marked is what the whole trace tells.
func TestDropped(t *testing.T) {
	recordings(t, func(t *testing.T, name string, rec *recording) {
		if name == "dropped" || name == "http-attach" {
			t.Skip("others do")
		}
		whole := map[string]*httpphases.Request{}
		for _, r := range run(rec.events, nil) {
			whole[key(r)] = r
		}
		rounds := 6
		if testing.Short() {
			rounds = 2
		}
		for round := range rounds {
			for _, share := range []float64{.002, .02, .2, .6} {
				for _, told := range []bool{true, false} {
					r := rand.New(rand.NewPCG(uint64(round), uint64(share*1000)))
					var kept []httpphases.Event
					losses := map[int]lostEvents{}
					last := map[uint64]int64{}
					gone := map[uint64]bool{}
					for i := range rec.events {
						e := &rec.events[i]
						if r.Float64() < share {
							gone[e.Thread] = true
							continue
						}
						if gone[e.Thread] {
							losses[len(kept)] = lostEvents{last[e.Thread]}
							gone[e.Thread] = false
						}
						last[e.Thread] = e.Time
						kept = append(kept, *e)
					}
					if !told {
						losses = nil
					}
					rows := run(kept, losses)
					lies := 0
					for _, r := range rows {
						require.NoError(t, violation(r), "share %v: request at %d, %s: %+v", share, r.Start, r.URL(), r)
						w := whole[key(r)]
						if r.StartUnknown {
							require.Equal(t, httpphases.Incomplete, r.Outcome)
							continue
						}
						require.NotNil(t, w)
						if name == "http-notpl" {
							continue // without ids every link is a guess
						}
						if why := lie(r, w); why != "" {
							lies++
							if told {
								t.Errorf("share %v, round %d: request at %d, %s %s: %s\nrow   %s\nwhole %s", share, round, r.Start, r.URL(), r.Outcome, why, inWords(r), inWords(w))
							}
						}
					}
					if !told {
						// Sequence numbers are what shows a loss. Without them a lost failure
						// cannot be seen.
						assert.LessOrEqual(t, lies, 2+len(rows)/25, "share %v", share)
					}
					if t.Failed() {
						return
					}
				}
			}
		}
	})
}

// lie says what a row claims that the whole trace knows to be wrong.
func lie(r, w *httpphases.Request) string {
	if r.Outcome != httpphases.Incomplete && r.Outcome != w.Outcome {
		return fmt.Sprintf("outcome %s, really %s", r.Outcome, w.Outcome)
	}
	if r.HasDuration && r.Duration != w.Duration {
		return fmt.Sprintf("duration %d, really %d", r.Duration, w.Duration)
	}
	if r.Status != 0 && r.Status != w.Status {
		return fmt.Sprintf("status %d, really %d", r.Status, w.Status)
	}
	if r.Version != "" && r.Version != w.Version && len(w.Redirects) == len(r.Redirects) {
		return fmt.Sprintf("version %s, really %s", r.Version, w.Version)
	}
	if r.Outcome == httpphases.Incomplete || len(r.Missing) > 0 {
		return ""
	}
	if r.Connection != nil && w.Connection != nil && r.Connection.NewTold && r.Connection.New != w.Connection.New {
		return fmt.Sprintf("connection new %v, really %v", r.Connection.New, w.Connection.New)
	}
	for _, p := range r.Phases {
		found := false
		for _, q := range w.Phases {
			found = found || q.Name == p.Name && q.Start == p.Start && q.Duration == p.Duration
		}
		if !found {
			return fmt.Sprintf("a phase that is not: %+v", p)
		}
	}
	return ""
}

// The findings name what a recording lacks, and only that.
func TestFindings(t *testing.T) {
	for name, want := range map[string][]string{
		"http-full": nil, "http-bridge": nil,
		"http-notpl": {"System.Threading.Tasks.TplEventSource keyword 0x80"},
		"dropped":    {"System.Net.NameResolution", "System.Net.Security"},
		"chain":      {"System.Net.Http"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := loadFile(t, tracetest.Corpus(t, "dotnet10", name+".nettrace"))
			var got []string
			for _, f := range rec.scan.Findings(&rec.need, Client) {
				got = append(got, f.Missing)
			}
			sort.Strings(got)
			assert.Equal(t, want, got)
		})
	}
	assert.Equal(t, `dotnet-trace collect -p 12 --providers "System.Net.Http:0xFFFFFFFFFFFFFFFF:4,System.Net.NameResolution:0xFFFFFFFFFFFFFFFF:4,`+
		`System.Net.Sockets:0xFFFFFFFFFFFFFFFF:4,System.Net.Security:0xFFFFFFFFFFFFFFFF:4,System.Threading.Tasks.TplEventSource:0x80:4"`, (&Scanner{}).Line(12, Client, false))
}

// The server's rows are paired with the client's where the bridge was on.
func TestServerRequests(t *testing.T) {
	rec := loadFile(t, tracetest.Corpus(t, "dotnet10", "http-bridge.nettrace"))
	require.Len(t, rec.served, 168)
	clients := map[int]*httpphases.Request{}
	for _, r := range rec.rows {
		clients[r.ID] = r
	}
	for _, s := range rec.served {
		c := clients[s.Client]
		require.NotNil(t, c, "%s %s", s.Method, s.Target)
		assert.GreaterOrEqual(t, s.Start, c.Start)
		if len(c.Redirects) == 0 { // each hop has a trace of its own
			assert.Equal(t, c.TraceID, s.TraceID)
			path, _, _ := strings.Cut(c.Target, "?")
			got, _, _ := strings.Cut(s.Target, "?")
			assert.Equal(t, path, got)
			assert.Equal(t, c.Method, s.Method)
			assert.Equal(t, s.ParentSpanID, c.SpanID)
		}
	}
}

// A seen is what the client of a recording saw of one request.
type seen struct {
	Name     string  `json:"name"`
	URL      string  `json:"url"`
	Method   string  `json:"method"`
	Start    int64   `json:"qpc_start"`
	Headers  int64   `json:"qpc_headers"`
	Stop     int64   `json:"qpc_stop"`
	Status   int     `json:"status"`
	Version  string  `json:"version"`
	Error    *string `json:"error"`
	Streamed bool    `json:"streamed"`
}

func truth(t *testing.T, path string) []seen {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var list []seen
	d := json.NewDecoder(bytes.NewReader(b))
	for d.More() {
		var s seen
		require.NoError(t, d.Decode(&s))
		list = append(list, s)
	}
	require.NotEmpty(t, list)
	return list
}

// place is what a URL and a row have in common: queries are redacted.
func place(scheme string, port int, path string) string {
	path, _, _ = strings.Cut(path, "?")
	return fmt.Sprint(scheme, " ", port, " ", path)
}

// Every request of the client has its row, and the row tells what the client saw.
func TestTruth(t *testing.T) {
	for name, path := range map[string]string{
		"testdata": filepath.Join("testdata", "http-more"), "http-full": "", "http-net8": "", "http-net9": "", "http-bridge": "",
	} {
		t.Run(name, func(t *testing.T) {
			var rec *recording
			var list []seen
			if path != "" {
				rec, list = loadFile(t, path+".nettrace.zst"), truth(t, path+".truth.ndjson")
			} else {
				rec = loadFile(t, tracetest.Corpus(t, "dotnet10", name+".nettrace"))
				list = truth(t, tracetest.Corpus(t, "dotnet10", name+".truth.ndjson"))
			}
			rows := map[string][]*httpphases.Request{}
			for _, r := range rec.rows {
				k := place(r.Scheme, r.Port, r.Target)
				rows[k] = append(rows[k], r)
			}
			sort.SliceStable(list, func(i, j int) bool { return list[i].Start < list[j].Start })
			// Calls of one address at once are told apart by their ends: a perfect
			// matching of what fits must exist.
			fits := make([][]*httpphases.Request, len(list))
			ends := make([]int64, len(list))
			for i, s := range list {
				u, err := url.Parse(s.URL)
				require.NoError(t, err)
				port, _ := strconv.Atoi(u.Port())
				if port == 0 {
					port = map[string]int{"http": 80, "https": 443, "ftp": 21}[u.Scheme]
				}
				ends[i] = rec.nanos(s.Stop)
				if s.Headers != 0 {
					ends[i] = rec.nanos(s.Headers)
				}
				for _, r := range rows[place(u.Scheme, port, u.Path)] {
					off := r.Start + r.Duration - ends[i]
					if d := r.Start - rec.nanos(s.Start); d >= -2000 && d < 50e6 && max(off, -off) < 2e6 {
						fits[i] = append(fits[i], r)
					}
				}
			}
			matched := map[*httpphases.Request]int{}
			var match func(i int, tried map[*httpphases.Request]bool) bool
			match = func(i int, tried map[*httpphases.Request]bool) bool {
				for _, r := range fits[i] {
					if tried[r] {
						continue
					}
					tried[r] = true
					if j, taken := matched[r]; !taken || match(j, tried) {
						matched[r] = i
						return true
					}
				}
				return false
			}
			for i := range list {
				require.True(t, match(i, map[*httpphases.Request]bool{}), "%s at %d has no row", list[i].Name, rec.nanos(list[i].Start))
			}
			rowOf := make([]*httpphases.Request, len(list))
			for r, i := range matched {
				rowOf[i] = r
			}
			cold := true
			for i, s := range list {
				best, from, end := rowOf[i], rec.nanos(s.Start), ends[i]
				want := httpphases.OK
				if s.Error != nil && !(s.Streamed && s.Headers != 0) {
					want = httpphases.Failed
					if strings.HasPrefix(*s.Error, "TaskCanceled") || strings.HasPrefix(*s.Error, "OperationCanceled") {
						want = httpphases.Canceled
					}
				}
				assert.Equal(t, want, best.Outcome, s.Name)
				if s.Status != 0 {
					assert.Equal(t, s.Status, best.Status, s.Name)
				} else if best.Status != 0 {
					_, body := best.Phase(httpphases.ResponseContent)
					assert.True(t, body && want != httpphases.OK, "%s: status %d, the client got no answer", s.Name, best.Status)
				}
				if s.Version != "" {
					assert.Equal(t, s.Version, best.Version, s.Name)
				}
				if best.Method != "" {
					assert.Equal(t, s.Method, best.Method, s.Name)
				}
				if !cold { // the runtime compiles code before the very first RequestStart
					assert.InDelta(t, end-from, best.Duration, 2e6, s.Name)
				}
				cold = false
			}
			for _, r := range rec.rows {
				if _, ok := matched[r]; !ok {
					assert.Equal(t, "/never", r.Target, "a request that the client did not make")
					assert.Equal(t, httpphases.Incomplete, r.Outcome)
				}
			}
		})
	}
}

// Before .NET 8 connections have no ids and redirects no event: rows tell less, and
// nothing else.
func TestBeforeNET8(t *testing.T) {
	t.Run("testdata", func(t *testing.T) {
		testBeforeNET8(t, loadFile(t, filepath.Join("testdata", "http-more.nettrace.zst")))
	})
	t.Run("http-net8", func(t *testing.T) {
		testBeforeNET8(t, loadFile(t, tracetest.Corpus(t, "dotnet10", "http-net8.nettrace")))
	})
}

func testBeforeNET8(t *testing.T, rec *recording) {
	var old []httpphases.Event
	for _, e := range rec.events {
		switch e.Kind {
		case httpphases.RequestRedirect:
			continue
		case httpphases.ConnectionEstablished:
			e.Scheme, e.Host, e.Port, e.Text = "", "", 0, ""
		}
		e.Conn, e.HasConn = 0, false
		old = append(old, e)
	}
	whole := map[string]*httpphases.Request{}
	for _, r := range run(rec.events, nil) {
		whole[key(r)] = r
	}
	rows := run(old, nil)
	require.Len(t, rows, len(whole))
	same := 0
	for _, r := range rows {
		require.NoError(t, violation(r), "%+v", r)
		w := whole[key(r)]
		require.NotNil(t, w)
		assert.Equal(t, w.Outcome, r.Outcome, w.URL())
		assert.Equal(t, w.Status, r.Status, w.URL())
		assert.Equal(t, w.Duration, r.Duration, w.URL())
		assert.Len(t, r.Redirects, len(w.Redirects), w.URL())
		assert.Empty(t, r.Missing, w.URL())
		if fmt.Sprint(r.Phases) == fmt.Sprint(w.Phases) {
			same++
		} else if _, ok := w.Phase(httpphases.Proxy); ok {
			assert.Equal(t, w.Phases, r.Phases, "a tunnel is no exchange: %s", w.URL())
		}
	}
	assert.GreaterOrEqual(t, same, len(rows)*9/10, "rows with the same phases")
}

// A connection to another place than the URL names, to which a handler has sent the request, has no
// name to look up and no TLS that the URL tells of.
func TestNeedsOfWhatIsSentElsewhere(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		var need Need
		need.Request(&httpphases.Request{Scheme: "https", Host: "catalog", Connection: &httpphases.Connection{New: true, Class: httpphases.Own, Elsewhere: elsewhere}})
		assert.Equal(t, elsewhere, need.secure == 0)
		assert.Equal(t, elsewhere, need.named == 0)
	}
}

// What a recording lacks is told, and nothing else: here it is left out of one that has it.
func TestFindingsOfWhatIsLeftOut(t *testing.T) {
	provider := func(name string) func(*nettrace.Event) bool {
		return func(ev *nettrace.Event) bool { return ev.Metadata.Provider != name }
	}
	type finding struct{ missing, effect string }
	for name, c := range map[string]struct {
		keep func(*nettrace.Event) bool
		want []finding
	}{
		"all is there": {func(*nettrace.Event) bool { return true }, nil},
		"no names":     {provider(httpphases.ProviderDNS), []finding{{httpphases.ProviderDNS, "show no dns phase"}}},
		"no sockets":   {provider(httpphases.ProviderSockets), []finding{{httpphases.ProviderSockets, "show no connect phase"}}},
		"no TLS":       {provider(httpphases.ProviderSecurity), []finding{{httpphases.ProviderSecurity, "show no tls phase"}}},
		"no requests":  {provider(httpphases.ProviderHTTP), []finding{{httpphases.ProviderHTTP, "keywords that drop its events"}}},
		"nothing else": {func(ev *nettrace.Event) bool { return ev.Metadata.Provider == httpphases.ProviderHTTP }, []finding{
			{httpphases.ProviderDNS, "show no dns phase"},
			{httpphases.ProviderSockets, "show no connect phase"},
			{httpphases.ProviderSecurity, "show no tls phase"},
		}},
		"no starts, and no ids to tell them by": {func(ev *nettrace.Event) bool {
			ev.ActivityID, ev.RelatedActivityID = nettrace.GUID{}, nettrace.GUID{}
			return ev.Metadata.Provider != httpphases.ProviderHTTP || ev.Metadata.EventID != int(httpphases.RequestStart)
		}, []finding{{"RequestStart", "began before the recording did"}}},
		"no ids": {func(ev *nettrace.Event) bool {
			ev.ActivityID, ev.RelatedActivityID = nettrace.GUID{}, nettrace.GUID{}
			return true
		}, []finding{{"System.Threading.Tasks.TplEventSource keyword 0x80", "links guessed"}}},
	} {
		var scan *Scanner
		var need Need
		_, err := Read(t.Context(), open(t, filepath.Join("testdata", "http-more.nettrace.zst")), func(r *nettrace.Reader) {
			scan = NewScanner(r, func(q *httpphases.Request) { need.Request(q) }, func(*httpphases.ServerRequest) {})
		}, func(ev *nettrace.Event) {
			if c.keep(ev) {
				scan.Event(ev)
			}
		})
		require.NoError(t, err)
		scan.Finish()
		got := scan.Findings(&need, Client)
		var missing, want []string
		for _, f := range got {
			missing = append(missing, f.Missing)
		}
		for _, f := range c.want {
			want = append(want, f.missing)
		}
		if assert.Equal(t, want, missing, "%s: %v", name, got) {
			for i, f := range c.want {
				assert.Contains(t, got[i].Effect, f.effect, name)
			}
		}
	}
}
