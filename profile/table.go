package profile

import "github.com/tracefix/tracefix/stackfix/stacks"

// Ids are dense integers and aliases, so that package stackfix, which knows nothing of this
// package, repairs the stacks of a Table as they are.
type (
	// StackID names a stack of a Table. 0 is the empty stack.
	StackID = stacks.StackID
	// FrameID names a frame of a Table: one identity that two stacks may share.
	FrameID = stacks.FrameID
	// MethodID names a method of a Table: what a viewer prints.
	MethodID = uint32
)

// FrameKind says what code a method is.
type FrameKind uint8

// Kinds of frames.
const (
	Managed    FrameKind = iota // code of the .NET runtime: jitted or precompiled
	Native                      // an ELF, Mach-O or PE image
	Kernel                      // the kernel
	Unresolved                  // an address without a name
	Synthetic                   // no code: thread roots, leaf markers, the bridge
)

// A Method is what a frame is called.
type Method struct {
	Module string // without directory and without .dll or .exe; empty if there is none
	Name   string // Namespace.Type.Method(args)
	Kind   FrameKind
}

// Full returns the name as dotnet-trace prints it in speedscope files:
// Module!Name, or Name alone where there is no module.
func (m Method) Full() string {
	if m.Module == "" {
		return m.Name
	}
	return m.Module + "!" + m.Name
}

// A Frame is one frame identity: in nettrace a method and the address in it, in
// Chromium JSON the sf id, where Addr is 0.
type Frame struct {
	Method MethodID
	Addr   uint64
}

// A Place is a line of a source file.
type Place struct {
	File string
	Line int // from 1
}

// Bridge is the name of the one frame that stands for frames which could not be
// known. Nothing else has that name.
const Bridge = "[frames lost]"

var bridge = Method{Name: Bridge, Kind: Synthetic}

// AddBridge interns the method of the bridge.
func (t *Table) AddBridge() MethodID { return t.AddMethod(bridge) }

// Bridged returns for each stack whether it holds the bridge; nil if none does.
func (t *Table) Bridged() []bool {
	m, ok := t.methodIDs[bridge]
	if !ok {
		return nil
	}
	holds := make([]bool, t.Stacks())
	for i := 1; i < len(holds); i++ {
		s := StackID(i)
		holds[i] = holds[t.Parent(s)] || t.Method(t.Frame(s)) == m
	}
	return holds
}

// CallerUnknown is the name of the frame of a logical stack that stands for what awaits the
// frames behind it, where that is not known.
const CallerUnknown = "[caller unknown]"

// Started is the name of the frame of a logical stack that stands between a method and an async one
// that it called, where nothing tells who awaits that, if anyone does.
const Started = "[started]"

// OffCPU is the leaf that writers give to the stack of a thread while it is switched out.
const OffCPU = "[off CPU]"

// A Table interns methods, frames and stacks. It only grows. The zero Table is not
// usable.
type Table struct {
	stacks.Tree // the stacks

	methods   []Method
	methodIDs map[Method]MethodID
	frames    []Frame

	places map[FrameID]Place  // of the frames whose line is known
	begins map[MethodID]Place // of the methods whose file is known
}

// NewTable returns a table that holds the empty stack only.
func NewTable() *Table {
	return &Table{Tree: *stacks.NewTree(), methodIDs: map[Method]MethodID{}}
}

// AddMethod interns m.
func (t *Table) AddMethod(m Method) MethodID {
	if id, ok := t.methodIDs[m]; ok {
		return id
	}
	id := MethodID(len(t.methods))
	t.methods = append(t.methods, m)
	t.methodIDs[m] = id
	return id
}

// AddFrame appends a frame. It does not intern: the caller knows what is one identity.
func (t *Table) AddFrame(f Frame) FrameID {
	t.frames = append(t.frames, f)
	return FrameID(len(t.frames) - 1)
}

// SetMethod names a frame whose method was not known when it was added.
func (t *Table) SetMethod(f FrameID, m MethodID) { t.frames[f].Method = m }

// SetPlace says which line of the source a frame stands in.
func (t *Table) SetPlace(f FrameID, p Place) {
	if t.places == nil {
		t.places = map[FrameID]Place{}
	}
	t.places[f] = p
}

// PlaceOf returns the line of the source that a frame stands in; zero where it is not known.
func (t *Table) PlaceOf(f FrameID) Place { return t.places[f] }

// SetBegin says where a method begins.
func (t *Table) SetBegin(m MethodID, p Place) {
	if t.begins == nil {
		t.begins = map[MethodID]Place{}
	}
	t.begins[m] = p
}

// BeginOf returns where a method begins; zero where it is not known.
func (t *Table) BeginOf(m MethodID) Place { return t.begins[m] }

// Stacks returns the number of stacks, the empty one included.
func (t *Table) Stacks() int { return t.Len() }

// Frames returns the number of frames.
func (t *Table) Frames() int { return len(t.frames) }

// Methods returns the number of methods.
func (t *Table) Methods() int { return len(t.methods) }

// Method returns the method of a frame.
func (t *Table) Method(f FrameID) MethodID { return t.frames[f].Method }

// FrameAt returns the frame f.
func (t *Table) FrameAt(f FrameID) Frame { return t.frames[f] }

// MethodAt returns the method m.
func (t *Table) MethodAt(m MethodID) Method { return t.methods[m] }

// MethodOf returns the method of the frame f.
func (t *Table) MethodOf(f FrameID) Method { return t.methods[t.frames[f].Method] }

// Synthetic says of every method whether it is drawn by other means than a frame: a
// thread root or a leaf marker. The bridge, CallerUnknown and Started are drawn.
func (t *Table) Synthetic() []bool {
	skip := make([]bool, t.Methods())
	for i := range skip {
		m := t.MethodAt(MethodID(i))
		skip[i] = m.Kind == Synthetic && m.Name != Bridge && m.Name != CallerUnknown && m.Name != Started
	}
	return skip
}
