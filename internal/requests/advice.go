package requests

import (
	"fmt"
	"strings"

	"github.com/tracefix/tracefix/httpphases"
	"github.com/tracefix/tracefix/internal/collect"
	"github.com/tracefix/tracefix/nettrace"
)

// A Finding is something that the recording lacks, and what that does to the rows.
type Finding struct {
	Missing string `json:"missing"` // a provider, keyword or level
	Effect  string `json:"effect"`
}

// Need is what the requests of a trace told about what its recording lacks.
type Need struct {
	secure, named, opened int64 // new connections: to https, to a name, in all
	noFailure             int64 // requests without answer and without failure
	noMethod, requests    int64
	failed, noDetail      int64
}

// Request counts what r shows.
func (n *Need) Request(r *httpphases.Request) {
	n.requests++
	if r.Method == "" {
		n.noMethod++
	}
	if r.Outcome == httpphases.Failed || r.Outcome == httpphases.Canceled {
		n.failed++
		if r.Detail == "" {
			n.noDetail++
		}
	}
	if c := r.Connection; c != nil && c.New && c.Class != httpphases.Adopted {
		n.opened++
		if r.Scheme == "https" && !c.Elsewhere {
			n.secure++
		}
		if !c.Elsewhere && strings.Trim(r.Host, "0123456789.:[]abcdef") != "" || r.Host == "" {
			n.named++
		}
	}
	for _, m := range r.Missing {
		if m == "RequestFailed" {
			n.noFailure++
		}
	}
}

// Sides are those from which requests are looked at.
type Sides uint8

// The sides.
const (
	Client Sides = 1 << iota // requests that the process made
	Server                   // requests that it served
)

// Findings tells what the recording lacks that requests need. Only what has evidence
// is told: a provider that had nothing to say is not missing.
func (s *Scanner) Findings(n *Need, sides Sides) []Finding {
	var f []Finding
	if sides&Client != 0 {
		f = s.clientFindings(n)
	}
	if sides&Server != 0 && s.builder.Stats().Servers == 0 {
		effect := "no served request is recorded: the provider was not enabled, or the process served none"
		if s.seen.served > 0 {
			effect = "no served request is recorded: the process served none, or all of them began before the recording did"
		}
		f = append(f, Finding{httpphases.ProviderHosting, effect})
	}
	return f
}

// Before tells of requests that are no rows, as they began before the recording; empty if there are none.
func (s *Scanner) Before(sides Sides) string {
	n := s.builder.Stats().Unasked
	if sides&Client == 0 || n == 0 {
		return ""
	}
	return fmt.Sprintf("%s to requests that began before the recording, or while it was being turned on. They are not listed: System.Net.Http tells their statuses and nothing else.", answers(n))
}

func answers(n int64) string {
	if n == 1 {
		return "1 answer came"
	}
	return fmt.Sprintf("%d answers came", n)
}

// Findings tells what the recording lacks that would tell where time went: without it more of it
// is unknown.
func (r *Recorder) Findings() []Finding {
	var f []Finding
	if !r.Log.Sampled() {
		f = append(f, Finding{nettrace.ProviderSampler, "no CPU samples tell what ran and what blocked, so that is known at events alone"})
	}
	if !r.Log.Awaited() {
		f = append(f, Finding{collect.TaskCauses, "no task events tell whose work goes on, and what waited for the thread pool, where no other event does"})
	}
	return f
}

func (s *Scanner) clientFindings(n *Need) []Finding {
	var f []Finding
	add := func(missing, effect string, args ...any) {
		f = append(f, Finding{missing, fmt.Sprintf(effect, args...)})
	}
	st := s.builder.Stats()
	p := s.seen.providers
	defined := false
	for _, m := range s.reader.Metadata() {
		defined = defined || m.Provider == httpphases.ProviderHTTP
	}
	switch {
	case p[0] == 0 && st.Requests > 0:
		effect := "requests have no phases and end with the headers of the answer: that is what the DiagnosticSource bridge tells"
		if s.seen.old {
			effect += ", and .NET before 5 has nothing else"
		}
		add(httpphases.ProviderHTTP, "%s", effect)
		return f
	case p[0] == 0 && s.seen.old:
		add(httpphases.ProviderBridge, "no request is recorded. .NET before 5 has no System.Net.Http events; the bridge alone tells of requests there")
		return f
	case p[0] == 0 && (defined || p[1]+p[2]+p[3] > 0):
		add(httpphases.ProviderHTTP, "no request is recorded. Either the provider was not enabled, or with keywords that drop its events: on .NET 5 to 7 a mask such as 0, 1 or 0xFFFFFFFF does; use 0xFFFFFFFFFFFFFFFF")
		return f
	case p[0] == 0:
		add(httpphases.ProviderHTTP, "no request is recorded: the provider was not enabled, or the process made none")
		return f
	case st.Requests == 0 && st.NoRequest > 0:
		add("RequestStart", "all requests began before the recording did; only parts of them are there")
	}
	if st.Requests > 0 && st.WithID == 0 {
		add("System.Threading.Tasks.TplEventSource keyword 0x80", "events have no activity ids. They are linked by thread and connection: right for requests that ran one at a time, a guess where many ran at once (%d links guessed)", st.Guesses)
	}
	if p[1] == 0 && n.named > 0 {
		add(httpphases.ProviderDNS, "%d new connections to a name show no dns phase", n.named)
	}
	if p[2] == 0 && st.Connections > 0 {
		add(httpphases.ProviderSockets, "%d new connections show no connect phase", st.Connections)
	}
	if p[3] == 0 && n.secure > 0 {
		add(httpphases.ProviderSecurity, "%d new https connections show no tls phase", n.secure)
	}
	if n.noFailure > 0 && s.losses == 0 {
		add("System.Net.Http at level 2 or above", "%d requests ended without answer and without a reason", n.noFailure)
	}
	if n.failed > 0 && n.failed == n.noDetail && st.Versions[httpphases.RequestFailed] {
		add("System.Net.Http keyword 0x1", "failures have no exception type, so canceled and failed are told apart by their text only")
	}
	return f
}

// bridgeSpecs ask the DiagnosticSource bridge of .NET before 5 for requests.
var bridgeSpecs = map[Sides]string{
	Client: `HttpHandlerDiagnosticListener/System.Net.Http.HttpRequestOut.Start@Activity1Start:-Request.RequestUri;Request.Method;ActivityId=*Activity.Id;ActivityStartTime=*Activity.StartTimeUtc.Ticks` +
		`\nHttpHandlerDiagnosticListener/System.Net.Http.HttpRequestOut.Stop@Activity1Stop:-Response.StatusCode;RequestTaskStatus;ActivityId=*Activity.Id`,
	Server: `Microsoft.AspNetCore/Microsoft.AspNetCore.Hosting.HttpRequestIn.Start@Activity2Start:-Request.Scheme;Request.Host;Request.PathBase;Request.Path;Request.QueryString;Request.Method;ActivityId=*Activity.Id;ActivityParentId=*Activity.ParentId` +
		`\nMicrosoft.AspNetCore/Microsoft.AspNetCore.Hosting.HttpRequestIn.Stop@Activity2Stop:-Response.StatusCode;ActivityId=*Activity.Id`,
}

// Line is the line that records all that requests of these sides need, for the runtime and the
// recorder that wrote the trace; with causes also what tells where their time went.
func (s *Scanner) Line(pid int, sides Sides, causes bool) string {
	links, profiles := []string{collect.ActivityIDs}, []string(nil)
	if causes {
		links, profiles = []string{collect.TaskCauses, collect.RuntimeCauses}, []string{collect.Sampled}
	}
	var providers []string
	if s.seen.old && s.seen.providers == [4]int64{} {
		providers = oldProviders(sides, links)
	} else {
		providers = providersOf(sides, links)
		if sides == Client|Server || causes && sides == Server {
			providers = append(providers, collect.Spans) // whose ids pair both sides, and which tell statuses
		}
	}
	l := collect.Line{PID: pid, Profiles: profiles, Providers: providers}
	return l.For(s.version())
}

// oldProviders are those of .NET before 5, where the bridge alone tells of what a process asks for.
func oldProviders(sides Sides, links []string) (list []string) {
	var specs []string
	for _, side := range []Sides{Client, Server} {
		if sides&side != 0 {
			specs = append(specs, bridgeSpecs[side])
		}
	}
	if sides&Server != 0 {
		list = append(list, collect.All(httpphases.ProviderHosting))
	}
	return append(append(list, links...), httpphases.ProviderBridge+`:0x3:5:FilterAndPayloadSpecs="`+strings.Join(specs, `\n`)+`"`)
}

// version is that of the trace. A test may have no reader.
func (s *Scanner) version() int {
	if s.reader == nil {
		return 0
	}
	return s.reader.Header().Version
}

// ClientProviders are those that tell all of the requests that a process makes but for what links
// them, as dotnet-trace takes them.
func ClientProviders() (list []string) {
	for _, p := range netProviders {
		list = append(list, collect.All(p))
	}
	return list
}

// Providers are those that tell all of the requests of both sides, likewise, and what links them.
func Providers() []string {
	return append(providersOf(Client|Server, []string{collect.ActivityIDs}), collect.Spans)
}

// providersOf are those of .NET 5 and later.
func providersOf(sides Sides, links []string) (list []string) {
	if sides&Client != 0 {
		list = ClientProviders()
	}
	if sides&Server != 0 {
		list = append(list, collect.All(httpphases.ProviderHosting))
	}
	return append(list, links...)
}

// HasMethods reports whether the bridge told HTTP methods.
func (n *Need) HasMethods() bool { return n.requests > n.noMethod }
