package load

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracefix/tracefix/internal/load/pdb"
	"github.com/tracefix/tracefix/nettrace"
	"github.com/tracefix/tracefix/profile"
)

// A method is one range of code: a tier of a method, its hot or its cold part.
type method struct {
	id, module uint64
	start      uint64
	size       uint32
	flags      nettrace.MethodFlags
	name, end  uint32 // in symbols.text
	from, to   int64
	order      uint8 // how the event claims addresses by the reference's rules
	paths      int32 // 1 + number in symbols.paths of the module when the event came; 0: not known then
	offset     int64 // of the event in the file
}

const (
	claimAtEnd  uint8 = iota // load, start rundown
	claimAtOnce              // unload, end rundown
)

func (m *method) class() Class {
	if m.flags&nettrace.MethodJitted != 0 {
		return JIT
	}
	return 0
}

type module struct {
	il, native string
	pdb        string // where the compiler wrote it
	id         pdb.GUID
}

// Event takes an event that names code: of the runtime's provider, its rundown, or
// Universal.System; others are ignored. now is its time in ns. An error says that the payload
// breaks its layout; the event is then ignored. What tells of images goes to Images.Add.
func (p *symbols) Event(ev *nettrace.Event, now int64) error {
	switch ev.Metadata.Role {
	case nettrace.RoleMethodLoad, nettrace.RoleMethodUnload, nettrace.RoleMethodDCStart, nettrace.RoleMethodDCStop:
		return p.methodEvent(ev, now)
	case nettrace.RoleILMap:
		return p.lines.take(ev)
	case nettrace.RoleModuleLoad, nettrace.RoleModuleDCStart, nettrace.RoleModuleDCStop:
		return p.module(ev) // not unloads: methods of it may still want its name
	case nettrace.RoleMapping:
		return p.mapping(ev, now)
	case nettrace.RoleSymbol:
		return p.symbol(ev, now)
	}
	return nil
}

// methodEvent takes a load, an unload or a rundown of a method. Those without names come
// beside those with names, and tell nothing but that code is gone.
func (p *symbols) methodEvent(ev *nettrace.Event, now int64) error {
	e := &p.event
	if err := ev.Method(e); err != nil {
		return fmt.Errorf("method event of %d bytes: %w", len(ev.Payload), err)
	}
	m := method{id: e.MethodID, module: e.ModuleID, start: e.StartAddress, size: e.Size, flags: e.Flags, offset: ev.Offset}
	switch role := ev.Metadata.Role; {
	case role == nettrace.RoleMethodUnload && !e.Verbose:
		p.unloadShort(m, now)
		return nil
	case !e.Verbose:
		return nil
	case role == nettrace.RoleMethodUnload:
		return p.unload(m, now)
	case role == nettrace.RoleMethodLoad:
		err := p.method(m, now, claimAtEnd)
		p.lines.loaded(e, p.byStart, err)
		return err
	case role == nettrace.RoleMethodDCStart:
		err := p.method(m, beforeAll, claimAtEnd)
		p.lines.rundown(e, p.byStart, err)
		return err
	}
	err := p.methodEnd(m)
	p.lines.rundown(e, p.byStart, err)
	return err
}

// addName puts Namespace.Method(args) of the event into the text.
func (p *symbols) addName(m *method) error {
	e := &p.event
	size := e.Namespace.Len() + e.Name.Len() + e.Signature.Len()
	if len(p.text)+size > math.MaxInt32 {
		return errors.New("2 GiB of method names")
	}
	p.text = reserve(p.text, size+1)
	m.name = uint32(len(p.text))
	p.text = append(e.Namespace.AppendTo(p.text), '.')
	p.text = e.Name.AppendTo(p.text)
	args := len(p.text)
	p.text = e.Signature.AppendTo(p.text)
	if i := bytes.IndexByte(p.text[args:], '('); i >= 0 {
		p.text = slices.Delete(p.text, args, args+i) // the type that it returns
	} else {
		p.text = p.text[:args]
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
func (p *symbols) method(m method, from int64, order uint8) error {
	if p.rules == Reference && m.flags&nettrace.MethodJitted == 0 {
		return nil // only rundown names precompiled code
	}
	if err := p.addName(&m); err != nil {
		return err
	}
	m.from, m.to, m.order = from, afterAll, order
	if p.rules == ByTime && from != beforeAll && m.flags&nettrace.MethodJitted != 0 {
		// Whoever was here before is gone, even if nobody said so.
		p.retire(m.start, uint64(m.size), func(*place) bool { return true })
	}
	p.byStart[m.start] = int32(len(p.methods))
	p.methods = append(reserve(p.methods, 1), m)
	return nil
}

// methodEnd takes an end rundown.
func (p *symbols) methodEnd(m method) error {
	known, ok := p.byStart[m.start]
	ok = ok && p.methods[known].id == m.id && p.methods[known].size == m.size
	if p.rules == Reference {
		return p.claim(m, known, ok)
	}
	if ok {
		return nil // its load told the same, and when
	}
	if err := p.addName(&m); err != nil {
		return err
	}
	m.from, m.to = beforeAll, afterAll
	p.byStart[m.start] = int32(len(p.methods))
	p.methods = append(reserve(p.methods, 1), m)
	return nil
}

// claim names all addresses seen in m that nobody has claimed: what the reference
// does at an unload or end rundown.
func (p *symbols) claim(m method, known int32, ok bool) error {
	if !p.seen(m.start, m.size) {
		return nil
	}
	id := known
	if !ok {
		if err := p.addName(&m); err != nil {
			return err
		}
		m.order = claimAtOnce
		id = int32(len(p.methods))
		p.methods = append(reserve(p.methods, 1), m)
	}
	p.retire(m.start, uint64(m.size), func(pl *place) bool {
		pl.method = id
		return true
	})
	return nil
}

func (p *symbols) unload(m method, now int64) error {
	known, ok := p.byStart[m.start]
	ok = ok && p.methods[known].id == m.id && p.methods[known].size == m.size
	if p.rules == Reference {
		return p.claim(m, known, ok)
	}
	if ok {
		p.methods[known].to = now
	} else {
		if err := p.addName(&m); err != nil {
			return err
		}
		m.from, m.to = beforeAll, now
		p.methods = append(reserve(p.methods, 1), m)
	}
	delete(p.byStart, m.start)
	p.retire(m.start, uint64(m.size), func(*place) bool { return true })
	return nil
}

func (p *symbols) unloadShort(m method, now int64) {
	if p.rules == Reference {
		return
	}
	if known, ok := p.byStart[m.start]; ok && p.methods[known].id == m.id {
		p.methods[known].to = now
		delete(p.byStart, m.start)
	}
	p.retire(m.start, uint64(m.size), func(*place) bool { return true })
}

// claimJitted gives what nobody has claimed to the loads, in the order of the file.
func (p *symbols) claimJitted() {
	for i := range p.methods {
		if m := &p.methods[i]; m.order == claimAtEnd {
			p.retire(m.start, uint64(m.size), func(pl *place) bool {
				pl.method = int32(i)
				return true
			})
		}
	}
}

func (p *symbols) module(ev *nettrace.Event) error {
	var e nettrace.Module
	if err := ev.Module(&e); err != nil {
		return fmt.Errorf("module event of %d bytes: %w", len(ev.Payload), err)
	}
	mod := module{e.ILPath.String(), e.NativePath.String(), e.ManagedPDBPath.String(), pdb.GUID(e.ManagedPDB)}
	if i := p.modules[e.ModuleID]; i > 0 {
		old := &p.paths[i-1]
		if old.il == mod.il && mod.id == (pdb.GUID{}) {
			mod.id, mod.pdb = old.id, old.pdb // an event of the domain does not tell
		}
		if *old == mod {
			return nil
		}
	}
	p.paths = append(p.paths, mod)
	p.modules[e.ModuleID] = int32(len(p.paths))
	return nil
}

// index makes the ranges of the methods searchable.
func (p *symbols) index() spans {
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
	return clip(list, func(id int32, last uint64) { p.clipped[p.methods[id].offset] = last })
}

func (p *symbols) methodName(i int32) profile.Method {
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
