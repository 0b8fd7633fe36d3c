package collect

// ActivityIDs is the provider that tells which events belong together across awaits.
const ActivityIDs = tasks + ":0x80:4"

// What tells where the time of requests and activities went: beside their own events and Sampled,
// collections, locks, exceptions and the thread pool of the runtime; and of tasks all, with ActivityIDs.
const (
	RuntimeCauses = runtime + ":0x1C001:4"
	TaskCauses    = tasks + ":0x1FF:4"
)

// RuntimeCounters are those that every .NET program has.
const RuntimeCounters = "System.Runtime:0:1:EventCounterIntervalSec=1"

const (
	runtime = "Microsoft-Windows-DotNETRuntime"
	tasks   = "System.Threading.Tasks.TplEventSource"
)

// All is a provider with all keywords. They are spelled out, as .NET 5 to 7 drop events where a
// mask has no bit in common with those of the event (http-events.md section 2). That of the bridge is
// for the spans of all sources: without a specification it tells of none.
func All(provider string) string {
	if provider == bridge {
		return Spans
	}
	return provider + ":0xFFFFFFFFFFFFFFFF:4"
}

const bridge = "Microsoft-Diagnostics-DiagnosticSource"

// Spans records System.Diagnostics.Activity of all ActivitySources.
const Spans = bridge + ":0x3:5:FilterAndPayloadSpecs=[AS]*"

// What records the things that commands report on.
var (
	Common       = Line{Profiles: []string{"dotnet-common"}} // exceptions, contention, the thread pool and more
	Samples      = Line{Profiles: []string{"dotnet-common", Sampled}}
	OffCPU       = Line{Linux: true, Profiles: []string{"dotnet-common", Sampled}, Waits: true}
	Allocations  = Line{Profiles: []string{"gc-verbose"}}
	Collections  = Line{Profiles: []string{"gc-collect"}}
	Compilations = Line{Providers: []string{runtime + ":0x1000000010:5"}}
	Contentions  = Line{Providers: []string{runtime + ":0x4000:4"}}
	WaitEvents   = Line{Providers: []string{runtime + ":0x40000004000:5"}} // from .NET 9 on
	Counters     = Line{Providers: []string{RuntimeCounters}}
	TaskIDs      = Line{Providers: []string{ActivityIDs, "..."}} // beside what else was recorded
)
