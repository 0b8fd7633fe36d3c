package spans

import (
	"bytes"
	"hash/maphash"
	"strings"

	"github.com/tracefix/tracefix/chromium"
	"github.com/tracefix/tracefix/profile"
)

// kind says what a frame is in a stack of dotnet-trace.
type kind uint8

const (
	kindCode    kind = iota
	kindThread       // `Thread (n)`: the innermost of the synthetic roots
	kindMarker       // the leaf that says what the thread did
	kindStitch       // joins the stacks of a task and of its creator
	kindBridge       // stands for frames that could not be known
	kindProcess      // the outermost of the synthetic roots
)

// Names of dotnet-trace's synthetic frames (SampleProfilerThreadTimeComputer.cs).
var kinds = map[string]kind{
	"CPU_TIME":            kindMarker,
	"UNMANAGED_CODE_TIME": kindMarker,
	"AWAIT_TIME":          kindMarker,
	"BLOCKED_TIME":        kindMarker,
	"UNKNOWN_ASYNC":       kindMarker,
	"STARTING TASK":       kindStitch,
	profile.Bridge:        kindBridge,
}

func kindOf(name string) kind {
	if k, ok := kinds[name]; ok {
		return k
	}
	switch {
	case strings.HasPrefix(name, "Thread ("):
		return kindThread
	case strings.HasPrefix(name, "Process64 "), strings.HasPrefix(name, "Process32 "):
		return kindProcess
	}
	return kindCode
}

// A frame is what the events of one name and sf id are about.
type frame struct {
	name int32 // chromium.Event.NameID
	kind kind
	sf   string // raw text, "" if the events have none
	cat  string // raw text without the mark: of frames of tracefix's own output, else that of the first begin

	begun bool // cat is that of a begin
	mixed bool // other begins have other categories
}

// frameKey finds a frame whose sf is not a small number.
type frameKey struct {
	name int32
	sf   string
}

// frameTable gives events their frames. Ids are those of the profile's table.
type frameTable struct {
	r      Source
	table  *profile.Table
	frames []frame
	bySF   []int32     // by small sf id: 1 + the frame first seen with it
	byName []int32     // by name of events without sf: 1 + the frame
	byOwn  []int32     // by name of events of tracefix's own output: 1 + the frame first seen with it
	owns   []ownThread // by chromium.Event.Thread
	other  map[frameKey]int32
	maxSF  int64 // largest number used as sf or as a key of stackFrames

	cat    string // that of the frames, see catOf
	begun  bool   // cat is that of a frame
	varied bool   // frames differ in it
	mixed  bool   // so do begins of one frame
	cats   bool   // a begin has a category
}

const maxSmallSF = 1 << 22

// smallSF reads sf as a number below maxSmallSF, else returns -1.
func smallSF(sf []byte) int {
	if len(sf) == 0 || len(sf) > 7 || len(sf) > 1 && sf[0] == '0' {
		return -1
	}
	n := 0
	for _, c := range sf {
		if c-'0' >= 10 {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	if n >= maxSmallSF {
		return -1
	}
	return n
}

// id returns the frame of a begin or end event.
func (t *frameTable) id(b *brief) profile.FrameID {
	if t.holds(b.thread) == holdsSamples {
		return t.ownID(b)
	}
	if b.sf == nil {
		for int(b.name) >= len(t.byName) {
			t.byName = append(t.byName, make([]int32, 64+len(t.byName))...)
		}
		if t.byName[b.name] == 0 {
			t.byName[b.name] = 1 + t.add(b)
		}
		return profile.FrameID(t.byName[b.name] - 1)
	}
	if n := smallSF(b.sf); n >= 0 {
		// The list grows with the ids that are used, not with the largest one.
		if n < len(t.bySF) || n < 2*len(t.bySF)+1024 {
			for n >= len(t.bySF) {
				t.bySF = append(t.bySF, make([]int32, 64+len(t.bySF))...)
			}
			f := t.bySF[n]
			if f == 0 {
				t.bySF[n] = 1 + t.add(b)
				return profile.FrameID(t.bySF[n] - 1)
			}
			if t.frames[f-1].name == b.name {
				return profile.FrameID(f - 1)
			}
		}
	}
	k := frameKey{b.name, string(b.sf)}
	f, ok := t.other[k]
	if !ok {
		f = t.add(b)
		t.other[k] = f
	}
	return profile.FrameID(f)
}

// add makes a new frame. Its module is known only once stackFrames was read.
func (t *frameTable) add(b *brief) int32 {
	name := ""
	if b.name != 0 {
		name = t.r.Name(b.name)
	}
	k := kindOf(name)
	m := profile.Method{Name: name}
	if m.Kind = profile.KindOf(m); k != kindCode {
		m.Kind = profile.Synthetic
	}
	t.table.AddFrame(profile.Frame{Method: t.table.AddMethod(m)})
	t.frames = append(t.frames, frame{name: b.name, kind: k, sf: string(b.sf)})
	t.noteSF(b.sf)
	return int32(len(t.frames) - 1)
}

func (t *frameTable) noteSF(sf []byte) { t.maxSF = max(t.maxSF, numberOfSF(sf)) }

// numberOfSF is what sf or a key of stackFrames says; -1 if that is no number.
func numberOfSF(sf []byte) int64 {
	sf = bytes.Trim(sf, `"`)
	if len(sf) == 0 || len(sf) > 18 {
		return -1
	}
	var n int64
	for _, c := range sf {
		if c-'0' >= 10 {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// kind returns the kind of f; the bridge may have been added by the repair.
func (t *frameTable) kind(f profile.FrameID) kind {
	if int(f) >= len(t.frames) {
		return kindBridge
	}
	return t.frames[f].kind
}

// begins takes in the category of a begin of frame f: its end must have the same, or none.
func (t *frameTable) begins(f profile.FrameID, b *brief) {
	fr := &t.frames[f]
	if fr.begun && fr.cat == string(b.cat) || t.holds(b.thread) != holdsUnknown {
		return
	}
	cat := unmarked(b.cat)
	if string(cat) == repairMark[1:] {
		cat = nil
	}
	switch {
	case !fr.begun:
		if !t.begun {
			t.begun, t.cat = true, string(cat)
		}
		if fr.begun, fr.cat = true, t.cat; fr.cat != string(cat) {
			fr.cat = string(cat)
		}
		t.cats = t.cats || fr.cat != ""
		t.varied = t.varied || t.cat != fr.cat
	case fr.cat != string(cat):
		fr.mixed, t.mixed = true, true
	}
}

// catOf returns the category of a frame, as raw text without the mark. The bridge that the repair
// added has that of all others, if they have the same.
func (t *frameTable) catOf(f profile.FrameID) string {
	switch {
	case int(f) < len(t.frames):
		return t.frames[f].cat
	case t.varied || t.mixed:
		return ""
	}
	return t.cat
}

// isMixed reports whether the begins of f differ in their category.
func (t *frameTable) isMixed(f profile.FrameID) bool {
	return int(f) < len(t.frames) && t.frames[f].mixed
}

// modules are the entries of stackFrames: the module of a frame is its category.
type modules struct {
	seed   maphash.Seed
	byID   map[string]entry
	index  map[string]int32
	texts  []string
	frames int
	maxSF  int64 // largest key
}

type entry struct {
	module int32
	name   uint64 // hash of the name
}

func (m *modules) add(f *chromium.StackFrame) {
	m.frames++
	m.maxSF = max(m.maxSF, numberOfSF(f.ID))
	if len(f.Category) == 0 {
		return
	}
	i, ok := m.index[string(f.Category)]
	if !ok {
		i = int32(len(m.texts))
		m.texts = append(m.texts, chromium.Unquote(f.Category))
		m.index[string(f.Category)] = i
	}
	name := f.Name
	if bytes.IndexByte(name, '\\') >= 0 { // events may escape it in another way
		name = []byte(chromium.Unquote(name))
	}
	m.byID[string(f.ID)] = entry{i, maphash.Bytes(m.seed, name)}
}

// setModules gives frames the modules of their sf ids. An entry with another name
// is not the frame's: Chrome uses sf for the stack in which an event happened.
func (t *frameTable) setModules(m *modules) {
	t.maxSF = max(t.maxSF, m.maxSF)
	for i, f := range t.frames {
		if f.sf == "" || f.kind == kindMarker {
			continue
		}
		e, ok := m.byID[strings.Trim(f.sf, `"`)]
		if !ok || f.name == 0 || maphash.String(m.seed, t.r.Name(f.name)) != e.name {
			continue
		}
		method := t.table.MethodOf(profile.FrameID(i))
		method.Module = m.texts[e.module]
		if method.Kind != profile.Synthetic {
			method.Kind = profile.KindOf(method)
		}
		t.table.SetMethod(profile.FrameID(i), t.table.AddMethod(method))
	}
}
