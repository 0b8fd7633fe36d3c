package trace

// Ids are dense integers and aliases of uint32, so that the stack table serves
// package stackfix, which knows nothing of this package, as it is.
type (
	// StackID names a stack of a Table: a node of its tree. 0 is the empty stack.
	StackID = uint32
	// FrameID names a frame of a Table: one identity that two stacks may share.
	FrameID = uint32
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

// Bridge is the name of the one frame that stands for frames which could not be
// known. Nothing else has that name.
const Bridge = "[frames lost]"

// A Table interns methods, frames and stacks. Stacks are a tree: a node is a frame
// and the stack of its callers. It only grows. The zero Table is not usable.
type Table struct {
	methods   []Method
	methodIDs map[Method]MethodID
	frames    []Frame

	parent []StackID
	frame  []FrameID
	depth  []uint32
	// child is the first stack that was pushed on each. Most stacks have no other, and
	// are found without a look at the slots.
	child []StackID
	slots []StackID // open addressing over (parent, frame) of all but first children; 0 is free
	held  int       // slots in use
}

// NewTable returns a table that holds the empty stack only.
func NewTable() *Table {
	return &Table{
		methodIDs: map[Method]MethodID{},
		parent:    []StackID{0},
		frame:     []FrameID{0},
		depth:     []uint32{0},
		child:     []StackID{0},
		slots:     make([]StackID, 256),
	}
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

// Push returns the stack that is f called from parent.
func (t *Table) Push(parent StackID, f FrameID) StackID {
	switch c := t.child[parent]; {
	case c == 0:
		id := t.add(parent, f)
		t.child[parent] = id
		return id
	case t.frame[c] == f:
		return c
	}
	mask := uint32(len(t.slots) - 1)
	i := hash(parent, f) & mask
	for {
		id := t.slots[i]
		if id == 0 {
			break
		}
		if t.parent[id] == parent && t.frame[id] == f {
			return id
		}
		i = (i + 1) & mask
	}
	id := t.add(parent, f)
	t.slots[i] = id
	if t.held++; t.held*4 > len(t.slots)*3 {
		t.grow()
	}
	return id
}

func (t *Table) add(parent StackID, f FrameID) StackID {
	id := StackID(len(t.parent))
	t.parent = append(t.parent, parent)
	t.frame = append(t.frame, f)
	t.depth = append(t.depth, t.depth[parent]+1)
	t.child = append(t.child, 0)
	return id
}

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]StackID, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, id := range old {
		if id == 0 {
			continue
		}
		i := hash(t.parent[id], t.frame[id]) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = id
	}
}

func hash(parent StackID, f FrameID) uint32 {
	h := (uint64(parent)<<32 | uint64(f)) * 0x9E3779B97F4A7C15
	return uint32(h >> 32)
}

// Stacks returns the number of stacks, the empty one included.
func (t *Table) Stacks() int { return len(t.parent) }

// Frames returns the number of frames.
func (t *Table) Frames() int { return len(t.frames) }

// Methods returns the number of methods.
func (t *Table) Methods() int { return len(t.methods) }

// Parent returns the stack of the callers of the top frame of s.
func (t *Table) Parent(s StackID) StackID { return t.parent[s] }

// Frame returns the innermost frame of s, which must not be the empty stack.
func (t *Table) Frame(s StackID) FrameID { return t.frame[s] }

// Depth returns the number of frames of s.
func (t *Table) Depth(s StackID) int { return int(t.depth[s]) }

// Method returns the method of a frame.
func (t *Table) Method(f FrameID) MethodID { return t.frames[f].Method }

// FrameAt returns the frame f.
func (t *Table) FrameAt(f FrameID) Frame { return t.frames[f] }

// MethodAt returns the method m.
func (t *Table) MethodAt(m MethodID) Method { return t.methods[m] }

// MethodOf returns the method of the frame f.
func (t *Table) MethodOf(f FrameID) Method { return t.methods[t.frames[f].Method] }

// AppendFrames appends the frames of s to dst, root first, and returns it.
func (t *Table) AppendFrames(dst []FrameID, s StackID) []FrameID {
	n := len(dst)
	d := int(t.depth[s])
	for range d {
		dst = append(dst, 0)
	}
	for i := n + d - 1; i >= n; i-- {
		dst[i] = t.frame[s]
		s = t.parent[s]
	}
	return dst
}
