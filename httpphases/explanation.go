package httpphases

// An Explanation says where the time of a request went. This package does not find it out:
// tracefix.File.Explain does, by package causality.
type Explanation struct {
	Time TimeByCause
	// CPUTotal is what all threads ran for the request; more than Time.CPU where several did
	// at once. ns.
	CPUTotal int64
	// PoolTotal is for how long its work was queued for threads of the pool, whatever else went on. ns.
	PoolTotal int64
	// CompileTotal is for how long its threads compiled methods, a part of CPUTotal, ns; 0 where the trace does not tell
	// when they began. Compiled is how many.
	CompileTotal int64
	Compiled     int
	Exceptions   []Exception  // thrown inside, in order of time
	Hot          []MethodTime // methods that ran, the longest first
	Blocked      []StackTime  // stacks that blocked, the longest first
	Children     []Child      // activities below, in order of time
	Steps        []Step       // all of its time, in order
	// Server is the request by which this process served it, with its own explanation.
	Server *ServerRequest
	// ServerGuessed says that no id leads to Server: it is the only one that fits by path, time,
	// port and connection.
	ServerGuessed bool
}

// TimeByCause is the time of a request by what it passed with, ns. At each instant the first
// cause that holds counts, in the order of the fields, so that they add up to its duration.
type TimeByCause struct {
	GC        int64 // a thread that ran for it was stopped by a collection
	CPU       int64 // a thread ran for it
	Lock      int64 // a thread stood blocked for it, for a lock,
	Sleep     int64 // in a sleep,
	Wait      int64 // for an event, a task or another thread,
	IO        int64 // for a file or a socket,
	Other     int64 // or for something else
	Pool      int64 // its work was queued for a thread of the pool
	OtherSide int64 // a request of its own waited for an answer
	Unknown   int64 // the trace does not tell
	Await     int64 // it awaited something else
}

// Causes yields the causes with their names, in the order in which they count.
func (t *TimeByCause) Causes(yield func(name string, ns int64) bool) {
	for _, c := range []struct {
		name string
		ns   int64
	}{
		{"gc", t.GC}, {"cpu", t.CPU}, {"lock", t.Lock}, {"sleep", t.Sleep}, {"wait", t.Wait}, {"io", t.IO}, {"other", t.Other},
		{"pool", t.Pool}, {"other_side", t.OtherSide}, {"unknown", t.Unknown}, {"await", t.Await},
	} {
		if !yield(c.name, c.ns) {
			return
		}
	}
}

// An Exception is one that was thrown, as often as it was.
type Exception struct {
	Type, Message string
	Cause         string // the innermost exception that it follows from, "type: message"
	At            int64  // ns: the first time
	Count         int
}

// MethodTime is a method and for how long it ran.
type MethodTime struct {
	Method string
	Time   int64 // ns
}

// StackTime is a stack and for how long it blocked.
type StackTime struct {
	Kind   string   // "lock", "sleep", "wait", "io" or "other"
	Time   int64    // ns
	Frames []string // innermost first
}

// A Child is an activity below a request, as far as was known when that had ended: one that ended
// later may have no Duration.
type Child struct {
	Name, Path  string
	Start       int64 // ns
	Duration    int64 // ns; nothing if !HasDuration
	HasDuration bool
}

// A Step is a stretch of time of a request.
type Step struct {
	From, To int64 // ns
	Cause    string
	Thread   uint64 // that ran or stood; 0: none, or several
}

// Add adds another request's.
func (t *TimeByCause) Add(u *TimeByCause) {
	t.GC += u.GC
	t.CPU += u.CPU
	t.Lock += u.Lock
	t.Sleep += u.Sleep
	t.Wait += u.Wait
	t.IO += u.IO
	t.Other += u.Other
	t.Pool += u.Pool
	t.OtherSide += u.OtherSide
	t.Unknown += u.Unknown
	t.Await += u.Await
}
