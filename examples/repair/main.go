// Command repair puts back the frames that the runtime cut from the CPU samples of a
// nettrace file, and prints for each thread the deepest stack that was repaired.
package main

import (
	"cmp"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"sort"

	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/stackfix"
	"github.com/tracefix/tracefix/stackfix/stacks"
)

// limit is the number of frames that EventPipe keeps of a stack.
const limit = 100

// A method is a piece of machine code with its name. A method that was compiled again
// has several, which share an id.
type method struct {
	start, end uint64
	name       string
	runtimeID  uint64
	id         stackfix.MethodID
}

// A recording is what the repair needs of a trace. A frame is an instruction pointer.
type recording struct {
	tree    *stacks.Tree
	addrs   []uint64 // by frame
	frames  map[uint64]stackfix.FrameID
	samples map[uint64][]stackfix.Sample // by thread
	methods []method
}

// frame returns the number of an instruction pointer.
func (r *recording) frame(addr uint64) stackfix.FrameID {
	f, ok := r.frames[addr]
	if !ok {
		f = stackfix.FrameID(len(r.addrs))
		r.addrs = append(r.addrs, addr)
		r.frames[addr] = f
	}
	return f
}

// Method implements stackfix.Frames. A frame that no event has named is a method of its
// own: the numbers behind those of the named ones.
func (r *recording) Method(f stackfix.FrameID) stackfix.MethodID {
	addr := r.addrs[f]
	i := sort.Search(len(r.methods), func(i int) bool { return addr < r.methods[i].end })
	if i < len(r.methods) && addr >= r.methods[i].start {
		return r.methods[i].id
	}
	return stackfix.MethodID(len(r.methods)) + f
}

func (r *recording) name(f stackfix.FrameID) string {
	if m := int(r.Method(f)); m < len(r.methods) {
		return r.methods[m].name
	}
	if r.addrs[f] == 0 {
		return "[frames lost]"
	}
	return fmt.Sprintf("0x%x", r.addrs[f])
}

// read takes the samples and the names of methods. Most names stand at the end of a
// trace, in the rundown.
func read(file *os.File) (*recording, error) {
	rec := &recording{tree: stacks.NewTree(), frames: map[uint64]stackfix.FrameID{}, samples: map[uint64][]stackfix.Sample{}}
	r, err := nettrace.NewReader(file, nil)
	if err != nil {
		return nil, err
	}
	var m nettrace.Method
	for ev, err := range r.All() {
		if err != nil {
			log.Print(err) // what is whole has been read
			break
		}
		switch ev.Metadata.Role {
		case nettrace.RoleMethodLoad, nettrace.RoleMethodDCStart, nettrace.RoleMethodDCStop:
			if err := ev.Method(&m); err == nil && m.Verbose {
				rec.methods = append(rec.methods, method{
					start: m.StartAddress, end: m.StartAddress + uint64(m.Size),
					name: m.Namespace.String() + "." + m.Name.String(), runtimeID: m.MethodID,
				})
			}
		case nettrace.RoleSample:
			s := stackfix.Sample{Time: r.Nanos(ev.Time)}
			for i := ev.Stack.Len() - 1; i >= 0; i-- { // the file has the innermost first
				s.Stack = rec.tree.Push(s.Stack, rec.frame(ev.Stack.At(i)))
			}
			if ev.Stack.Len() == limit {
				s.Cut = stackfix.Depth
			}
			rec.samples[ev.ThreadID] = append(rec.samples[ev.ThreadID], s)
		}
	}
	slices.SortFunc(rec.methods, func(a, b method) int { return cmp.Compare(a.start, b.start) })
	first := map[uint64]stackfix.MethodID{}
	for i := range rec.methods {
		m := &rec.methods[i]
		if _, ok := first[m.runtimeID]; !ok {
			first[m.runtimeID] = stackfix.MethodID(i)
		}
		m.id = first[m.runtimeID]
	}
	return rec, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: repair FILE.nettrace")
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	rec, err := read(file)
	if err != nil {
		log.Fatal(err)
	}

	tids := slices.Sorted(maps.Keys(rec.samples))
	var threads []stackfix.Thread
	for _, tid := range tids {
		threads = append(threads, stackfix.Thread{Samples: stackfix.Slice(rec.samples[tid])})
	}
	bridge := rec.frame(0) // no code is there
	res := stackfix.Fix(rec.tree, rec, threads, stackfix.Options{Bridge: bridge})

	fmt.Printf("%d samples, %d cut, %d of these bridged\n", res.Stats.Samples, res.Stats.Cut, res.Stats.How[stackfix.Bridge])
	for i, repairs := range res.Repairs {
		if len(repairs) == 0 {
			continue
		}
		deepest := slices.MaxFunc(repairs, func(a, b stackfix.Repair) int {
			return cmp.Compare(rec.tree.Depth(a.Stack), rec.tree.Depth(b.Stack))
		})
		fmt.Printf("thread %d: %v, %d frames restored, confidence %.3f\n", tids[i], deepest.How, deepest.Restored, deepest.Confidence)
		frames := rec.tree.AppendFrames(nil, deepest.Stack)
		for _, f := range frames[:min(8, len(frames))] {
			fmt.Println("   ", rec.name(f))
		}
		fmt.Println("    ...", len(frames), "frames in all")
	}
}
