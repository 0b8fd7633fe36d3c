package symbol

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/profile"
)

// Providers of method and module events.
const (
	RuntimeProvider = "Microsoft-Windows-DotNETRuntime"
	RundownProvider = "Microsoft-Windows-DotNETRuntimeRundown"
)

// A method is one range of code: a tier of a method, its hot or its cold part.
type method struct {
	id, module uint64
	start      uint64
	size       uint32
	flags      uint32
	name, end  uint32 // in Process.text
	from, to   int64
	order      uint8 // how the event claims addresses by the reference's rules
	paths      int32 // 1 + number in Process.paths of the module when the event came; 0: not known then
}

// Flags of a method (nettrace.md section 10.2).
const flagJitted = 0x8

const (
	claimAtEnd  uint8 = iota // load, start rundown
	claimAtOnce              // unload, end rundown
)

func (m *method) class() Class {
	if m.flags&flagJitted != 0 {
		return JIT
	}
	return 0
}

type module struct{ il, native string }

// Event takes an event of the runtime's provider or of its rundown, if it concerns
// names; others are ignored. now is its time in ns. An error says that the payload
// breaks its layout; the event is then ignored.
func (p *Process) Event(rundown bool, id int, payload []byte, now int64) error {
	if rundown {
		switch id {
		case 143: // MethodDCStartVerbose
			return p.method(payload, beforeAll, claimAtEnd)
		case 144: // MethodDCStopVerbose
			return p.methodEnd(payload)
		case 153, 154: // ModuleDCStart, ModuleDCStop
			return p.module(payload, false)
		case 151, 152: // DomainModuleDCStart, DomainModuleDCStop
			return p.module(payload, true)
		}
		return nil
	}
	switch id {
	case 143: // MethodLoadVerbose
		return p.method(payload, now, claimAtEnd)
	case 144: // MethodUnloadVerbose
		return p.unload(payload, now)
	case 142: // MethodUnload
		return p.unloadShort(payload, now)
	case 139: // MethodDCStartVerbose of old runtimes
		return p.method(payload, beforeAll, claimAtEnd)
	case 140: // MethodDCStopVerbose of old runtimes
		return p.methodEnd(payload)
	case 152: // ModuleLoad; 153 unloads, and methods of it may still want its name
		return p.module(payload, false)
	case 151: // DomainModuleLoad
		return p.module(payload, true)
	}
	return nil
}

// parse reads the fixed part of a method event and returns the rest.
func parseMethod(payload []byte) (method, cursor, error) {
	c := cursor{b: payload}
	m := method{id: c.u64(), module: c.u64(), start: c.u64(), size: c.u32()}
	c.u32() // metadata token
	m.flags = c.u32()
	if c.bad {
		return m, c, fmt.Errorf("method event of %d bytes: %w", len(payload), errShort)
	}
	return m, c, nil
}

// addName puts Namespace.Method(args) into the text.
func (p *Process) addName(m *method, c *cursor) error {
	ns, name, sig := c.utf16z(), c.utf16z(), c.utf16z()
	if c.bad {
		return fmt.Errorf("method event: unterminated name: %w", errShort)
	}
	if len(p.text)+len(ns)+len(name)+len(sig) > math.MaxInt32 {
		return errors.New("2 GiB of method names")
	}
	p.text = reserve(p.text, len(ns)+len(name)+len(sig)+1)
	m.name = uint32(len(p.text))
	p.text = appendUTF16(p.text, ns)
	p.text = append(p.text, '.')
	p.text = appendUTF16(p.text, name)
	if i := indexUTF16(sig, '('); i >= 0 {
		p.text = appendUTF16(p.text, sig[i:])
	}
	m.end = uint32(len(p.text))
	m.paths = p.modules[m.module]
	return nil
}

// reserve makes room for n more elements, if there is none for as many again: a list that
// grows by a quarter only, as large ones do by themselves, is copied five times.
func reserve[E any](s []E, n int) []E {
	if len(s)+n <= cap(s) {
		return s
	}
	return slices.Grow(s, max(n, len(s)))
}

// method takes a load or a start rundown.
func (p *Process) method(payload []byte, from int64, order uint8) error {
	m, c, err := parseMethod(payload)
	if err != nil {
		return err
	}
	if p.rules == Reference && m.flags&flagJitted == 0 {
		return nil // only rundown names precompiled code
	}
	if err := p.addName(&m, &c); err != nil {
		return err
	}
	m.from, m.to, m.order = from, afterAll, order
	if p.rules == ByTime && from != beforeAll && m.flags&flagJitted != 0 {
		// Whoever was here before is gone, even if nobody said so.
		p.retire(m.start, m.size, func(*place) bool { return true })
	}
	p.byStart[m.start] = int32(len(p.methods))
	p.methods = append(reserve(p.methods, 1), m)
	return nil
}

// methodEnd takes an end rundown.
func (p *Process) methodEnd(payload []byte) error {
	m, c, err := parseMethod(payload)
	if err != nil {
		return err
	}
	known, ok := p.byStart[m.start]
	ok = ok && p.methods[known].id == m.id && p.methods[known].size == m.size
	if p.rules == Reference {
		return p.claim(m, c, known, ok)
	}
	if ok {
		return nil // its load told the same, and when
	}
	if err := p.addName(&m, &c); err != nil {
		return err
	}
	m.from, m.to = beforeAll, afterAll
	p.byStart[m.start] = int32(len(p.methods))
	p.methods = append(reserve(p.methods, 1), m)
	return nil
}

// claim names all addresses seen in m that nobody has claimed: what the reference
// does at an unload or end rundown.
func (p *Process) claim(m method, c cursor, known int32, ok bool) error {
	if !p.seen(m.start, m.size) {
		return nil
	}
	id := known
	if !ok {
		if err := p.addName(&m, &c); err != nil {
			return err
		}
		m.order = claimAtOnce
		id = int32(len(p.methods))
		p.methods = append(reserve(p.methods, 1), m)
	}
	p.retire(m.start, m.size, func(pl *place) bool {
		pl.method = id
		return true
	})
	return nil
}

func (p *Process) unload(payload []byte, now int64) error {
	m, c, err := parseMethod(payload)
	if err != nil {
		return err
	}
	known, ok := p.byStart[m.start]
	ok = ok && p.methods[known].id == m.id && p.methods[known].size == m.size
	if p.rules == Reference {
		return p.claim(m, c, known, ok)
	}
	if ok {
		p.methods[known].to = now
	} else {
		if err := p.addName(&m, &c); err != nil {
			return err
		}
		m.from, m.to = beforeAll, now
		p.methods = append(reserve(p.methods, 1), m)
	}
	delete(p.byStart, m.start)
	p.retire(m.start, m.size, func(*place) bool { return true })
	return nil
}

func (p *Process) unloadShort(payload []byte, now int64) error {
	m, _, err := parseMethod(payload)
	if err != nil || p.rules == Reference {
		return err
	}
	if known, ok := p.byStart[m.start]; ok && p.methods[known].id == m.id {
		p.methods[known].to = now
		delete(p.byStart, m.start)
	}
	p.retire(m.start, m.size, func(*place) bool { return true })
	return nil
}

// claimJitted gives what nobody has claimed to the loads, in the order of the file.
func (p *Process) claimJitted() {
	for i := range p.methods {
		if m := &p.methods[i]; m.order == claimAtEnd {
			p.retire(m.start, m.size, func(pl *place) bool {
				pl.method = int32(i)
				return true
			})
		}
	}
}

func (p *Process) module(payload []byte, domain bool) error {
	c := cursor{b: payload}
	id := c.u64()
	c.u64() // assembly
	if domain {
		c.u64()
	}
	c.u32() // flags
	c.u32()
	il, native := c.utf16z(), c.utf16z()
	if c.bad {
		return fmt.Errorf("module event of %d bytes: %w", len(payload), errShort)
	}
	mod := module{string(appendUTF16(nil, il)), string(appendUTF16(nil, native))}
	if old := p.modules[id]; old > 0 && p.paths[old-1] == mod {
		return nil
	}
	p.paths = append(p.paths, mod)
	p.modules[id] = int32(len(p.paths))
	return nil
}

// index makes the ranges of the methods searchable.
func (p *Process) index() spans {
	if p.rules == Reference {
		return spans{}
	}
	list := make([]span, 0, len(p.methods))
	for i := range p.methods {
		m := &p.methods[i]
		if m.size == 0 || m.start+uint64(m.size)-1 < m.start {
			continue
		}
		list = append(list, span{m.start, m.start + uint64(m.size) - 1, m.from, m.to, int32(i)})
	}
	return newSpans(list)
}

func (p *Process) methodName(i int32) profile.Method {
	m := &p.methods[i]
	paths := m.paths
	if paths == 0 {
		paths = p.modules[m.module]
	}
	name := string(p.text[m.name:m.end])
	modName := "ManagedModule"
	if paths > 0 {
		mod := &p.paths[paths-1]
		modName = moduleName(mod.il, mod.native)
	}
	if p.rules == Reference || modName == "" {
		// A Method without a module prints no `!`, the reference does.
		return profile.Method{Name: modName + "!" + name}
	}
	return profile.Method{Module: modName, Name: name}
}

// moduleName is the file name of the IL path without .dll or .exe. Native images of
// old runtimes are called X.ni.dll and are their own IL path.
func moduleName(il, native string) string {
	if il == native {
		if i := strings.LastIndex(strings.ToLower(il), ".ni."); i >= 0 {
			il = il[:i] + il[i+3:]
		}
	}
	return trimImage(base(il))
}

func base(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// trimImage removes a final .dll or .exe.
func trimImage(name string) string {
	if n := len(name) - 4; n >= 0 {
		if ext := strings.ToLower(name[n:]); ext == ".dll" || ext == ".exe" {
			return name[:n]
		}
	}
	return name
}
