package spans

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/profile"
)

// A SpeedscopeError reports input that is not speedscope JSON.
type SpeedscopeError struct {
	Offset int64
	Where  string
	Err    error
}

func (e *SpeedscopeError) Error() string {
	return fmt.Sprintf("speedscope: offset %d: %s: %v", e.Offset, e.Where, e.Err)
}

func (e *SpeedscopeError) Unwrap() error { return e.Err }

// SpeedscopeFacts are what a file says of itself.
type SpeedscopeFacts struct {
	Exporter, Name string
	Frames         int
	Profiles       []*SpeedscopeProfile
	NoTime         string // a unit of profiles that is no time; each counts as a microsecond
}

// A Profile is what a file says of one of its profiles.
type SpeedscopeProfile struct {
	Name, Unit string
	Start, End float64 // in units
	Last       float64 // time of the last event
	Events     int
	Weights    int
	Ended      bool // its end was found
	Owned      bool // it tells its process and thread
	holds      json.RawMessage
}

// A Reader reads the events of a file, profile by profile. Its other methods are those of a
// chromium.Reader.
type SpeedscopeReader struct {
	in      io.ReadCloser
	w       *walker
	nextEv  func() (*chromium.Event, bool)
	stop    func()
	texts   []string // by chromium.Event.NameID
	ids     map[string]int32
	frames  []sharedFrame
	threads []chromium.Thread
	seen    map[speedscopeID]bool
	next    int64 // last place that was given to a thread whose number was taken
}

// A speedscopeID is the numbers of a process and of a thread of it.
type speedscopeID struct{ pid, tid int64 }

// A frame is what all events of a frame have in common.
type sharedFrame struct {
	name    int32
	cat, sf []byte
}

// dotnetRoot is a root of every stack that dotnet-trace writes, and tracefix where it
// writes what dotnet-trace would.
const dotnetRoot = "Threads"

// ownHolds is what an own file without it would say of its profiles: that their stacks
// were cut, as far as they were, where those of dotnet-trace are.
const ownHolds = `{"holds":"samples","limit":100}`

// NewSpeedscopeReader reads the frames of a file and begins with its events. open is called twice: frames may
// stand behind the profiles that use them. warn is told of damage; what is whole is read. Each
// frame is handed to stackFrame, as an entry of the stackFrames of a Chromium trace.
func NewSpeedscopeReader(open func() (io.ReadCloser, error), warn func(*SpeedscopeError), stackFrame func(*chromium.StackFrame) error) (*SpeedscopeReader, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	first := &walker{s: newScanner(in, nil), framesOnly: true}
	first.file()
	in.Close()
	if err := first.s.err; err != nil && err != io.EOF {
		return nil, err
	}
	r := &SpeedscopeReader{texts: []string{""}, ids: map[string]int32{}, seen: map[speedscopeID]bool{}}
	own := first.facts.Exporter == "tracefix" && !slices.Contains(first.names, dotnetRoot)
	if err := r.addFrames(first.names, own, stackFrame); err != nil {
		return nil, err
	}
	if r.in, err = open(); err != nil {
		return nil, err
	}
	r.w = &walker{s: newScanner(r.in, warn), own: own, frames: len(r.frames), dotnet: slices.Contains(first.names, dotnetRoot), first: first.facts.Profiles}
	r.nextEv, r.stop = iter.Pull(r.events)
	return r, nil
}

// addFrames prepares the frames. Those of tracefix's own output tell the module as in its
// Chromium JSON.
func (r *SpeedscopeReader) addFrames(names []string, own bool, stackFrame func(*chromium.StackFrame) error) error {
	for i, full := range names {
		module, name := split(full)
		if full == profile.Bridge || full == profile.OffCPU {
			module = "tracefix"
		}
		f := sharedFrame{name: r.text(name)}
		if own {
			f.cat = quoted(module)
		} else {
			f.cat, f.sf = []byte("sampleEvent"), strconv.AppendInt(nil, int64(i), 10)
		}
		r.frames = append(r.frames, f)
		if stackFrame != nil {
			if err := stackFrame(&chromium.StackFrame{ID: strconv.AppendInt(nil, int64(i), 10), Name: []byte(name), Category: quoted(module)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// quoted is the text of a string in JSON without its quotes.
func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return b[1 : len(b)-1]
}

// text numbers a text.
func (r *SpeedscopeReader) text(s string) int32 {
	id, ok := r.ids[s]
	if !ok {
		id = int32(len(r.texts))
		r.texts = append(r.texts, s)
		r.ids[s] = id
	}
	return id
}

// split is the rule of dotnet-trace: the module stands before the first "!".
func split(full string) (module, name string) {
	if i := strings.IndexByte(full, '!'); i > 0 {
		return full[:i], full[i+1:]
	}
	return "", full
}

// Read gives the next event, and io.EOF behind the last one.
func (r *SpeedscopeReader) Read(ev *chromium.Event) error {
	e, ok := r.nextEv()
	if ok {
		*ev = *e
		return nil
	}
	if err := r.w.s.err; err != nil && err != io.EOF {
		return err
	}
	return io.EOF
}

// Close closes the input.
func (r *SpeedscopeReader) Close() error {
	r.stop()
	return r.in.Close()
}

// Facts tells what was read so far.
func (r *SpeedscopeReader) Facts() *SpeedscopeFacts { return &r.w.facts }

// Name returns the text of a chromium.Event.NameID.
func (r *SpeedscopeReader) Name(id int32) string { return r.texts[id] }

// RawName returns the same as bytes.
func (r *SpeedscopeReader) RawName(id int32) []byte { return []byte(r.texts[id]) }

// Threads lists the threads, by chromium.Event.Thread.
func (r *SpeedscopeReader) Threads() []chromium.Thread { return r.threads }

// Keys are those of the object form of a trace.
func (r *SpeedscopeReader) Keys() []string { return []string{"stackFrames", "traceEvents"} }

// Form is the object form.
func (r *SpeedscopeReader) Form() chromium.Form { return chromium.FormObject }

// BOM reports that there is none.
func (r *SpeedscopeReader) BOM() bool { return false }

// InputOffset is the number of bytes read.
func (r *SpeedscopeReader) InputOffset() int64 { return r.w.s.off }

// microseconds is how many of them a unit is; units that are no time count as they are.
var microseconds = map[string]float64{"nanoseconds": 1e-3, "microseconds": 1, "milliseconds": 1e3, "seconds": 1e6}

var threadNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\((\d{1,18})\)|Thread (\d{1,18})$`) })

// A profileOwner is whose stacks a profile of an own file has, as it says itself.
type profileOwner struct {
	PID     int64
	Process string
	TID     *int64 // nil: it does not say; files of earlier versions name the thread only
	Thread  string
}

// ownerOf reads what an own file says of one of its profiles.
func ownerOf(holds json.RawMessage) (o profileOwner) {
	if len(holds) > 0 && json.Unmarshal(holds, &o) != nil {
		return profileOwner{}
	}
	return o
}

// thread tells the number of a profile's thread: that in "Thread (123)" or "Thread 123",
// if it is free, else its place in the file.
func (r *SpeedscopeReader) thread(name string) int64 {
	if all := threadNumber().FindAllStringSubmatch(name, -1); all != nil {
		m := all[len(all)-1] // that of the process may stand before
		if n, err := strconv.ParseInt(m[1]+m[2], 10, 64); err == nil {
			return r.free(0, n)
		}
	}
	return r.free(0, int64(len(r.threads)+1))
}

// free returns tid, which no other thread of the process has from now on; if one has it already, the place of
// the profile in the file, or the next one that is free.
func (r *SpeedscopeReader) free(pid, tid int64) int64 {
	if r.seen[speedscopeID{pid, tid}] {
		r.next = max(r.next, int64(len(r.threads)))
		for again := true; again; again = r.seen[speedscopeID{pid, r.next}] {
			r.next++ // it only grows: of a million profiles of one name each is looked at once
		}
		tid = r.next
	}
	r.seen[speedscopeID{pid, tid}] = true
	return tid
}

// againFrom is where the numbers begin of programs that had that of another one before.
const againFrom = 1 << 40

// farthest bounds times, ns: sums and differences must not overflow.
const farthest = 1 << 60

// events yields the events of the file.
func (r *SpeedscopeReader) events(yield func(*chromium.Event) bool) {
	var ev chromium.Event
	unit, name, far := 1.0, "", false
	named := map[program]int64{} // their numbers
	taken := map[int64]bool{}
	r.w.begin = func(p *SpeedscopeProfile, holds json.RawMessage) bool {
		var owner profileOwner
		if r.w.own {
			owner = ownerOf(holds)
		}
		title, tid := p.Name, int64(0)
		who := program{owner.PID, owner.Process}
		if pid, ok := named[who]; ok {
			owner.PID = pid
		} else if taken[owner.PID] && owner.TID != nil {
			owner.PID = againFrom + int64(len(named))
		}
		if owner.TID != nil {
			title, tid, p.Owned = owner.Thread, r.free(owner.PID, *owner.TID), true
		} else {
			owner = profileOwner{}
			tid = r.thread(p.Name)
		}
		var ok bool
		name = p.Unit
		if unit, ok = microseconds[p.Unit]; !ok {
			unit, r.w.facts.NoTime = 1, p.Unit
		}
		ev = chromium.Event{Offset: r.w.s.off, Thread: int32(len(r.threads)), PID: strconv.AppendInt(nil, owner.PID, 10), TID: strconv.AppendInt(nil, tid, 10)}
		r.threads = append(r.threads, chromium.Thread{PID: string(ev.PID), TID: string(ev.TID)})
		if !r.w.own && strings.HasPrefix(p.Name, "Thread (") {
			return true
		}
		if _, ok := named[who]; !ok && owner.TID != nil {
			named[who], taken[owner.PID] = owner.PID, true
			args := map[string]any{"name": cmp.Or(owner.Process, "?")}
			if owner.PID != who.PID {
				args["tracefix"] = who
			}
			if (owner.Process != "" || owner.PID != who.PID) && !r.tell(ev, "process_name", args, yield) {
				return false
			}
		}
		args := map[string]any{"name": title}
		if r.w.own {
			args["tracefix"] = json.RawMessage(ownHolds)
			if json.Valid(holds) {
				args["tracefix"] = holds
			}
		}
		return r.tell(ev, "thread_name", args, yield)
	}
	r.w.event = func(open bool, f int, at float64) bool {
		ev.Phase = 'E'
		if open {
			ev.Phase = 'B'
		}
		fr := &r.frames[f]
		ev.Offset = r.w.s.off
		ev.NameID, ev.Name, ev.Cat, ev.SF = fr.name, nil, fr.cat, fr.sf
		// Milliseconds times 1000 makes noise in the last digits; a trace's clock ticks in nanoseconds.
		ns := at * unit * 1000
		if math.Abs(ns) > farthest {
			if !far {
				far = true
				r.w.s.damage("amounts that come to %g (unit %q) are more than can be read: they count as %.4g", at, name, farthest/1000/unit)
			}
			ns = math.Copysign(farthest, ns)
		}
		ev.TS = chromium.Time{NS: int64(math.Round(ns)), Valid: true}
		return yield(&ev)
	}
	r.w.file()
}

// tell yields the metadata event of that name for the thread of ev.
func (r *SpeedscopeReader) tell(ev chromium.Event, name string, args map[string]any, yield func(*chromium.Event) bool) bool {
	b, err := json.Marshal(args)
	if err != nil {
		return true
	}
	ev.Phase, ev.Name, ev.NameID, ev.Args = 'M', []byte(name), r.text(name), b
	ev.TS = chromium.Time{Valid: true}
	return yield(&ev)
}
