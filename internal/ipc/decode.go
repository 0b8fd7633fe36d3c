package ipc

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/tracefix/tracefix/nettrace"
)

// commands are the names of requests, by set and id.
var commands = map[[2]int]string{
	{1, 1}: "GenerateCoreDump", {1, 2}: "GenerateCoreDump2", {1, 3}: "GenerateCoreDump3",
	{2, 1}: "StopTracing", {2, 2}: "CollectTracing", {2, 3}: "CollectTracing2", {2, 4}: "CollectTracing3",
	{2, 5}: "CollectTracing4", {2, 6}: "CollectTracing5", {2, 7}: "CollectTracing6",
	{3, 1}: "AttachProfiler", {3, 2}: "StartupProfiler",
	{4, 0}: "ProcessInfo", {4, 1}: "ResumeRuntime", {4, 2}: "ProcessEnvironment", {4, 3}: "SetEnvironmentVariable",
	{4, 4}: "ProcessInfo2", {4, 5}: "EnablePerfMap", {4, 6}: "DisablePerfMap", {4, 7}: "ApplyStartupHook", {4, 8}: "ProcessInfo3",
}

// results are the names of HRESULTs (diagnostics-ipc.md section 7).
var results = map[uint32]string{
	0: "S_OK", 0x80131384: "BAD_ENCODING", 0x80131385: "UNKNOWN_COMMAND", 0x80131386: "UNKNOWN_MAGIC", 0x80131387: "UNKNOWN_ERROR",
	0x80131515: "NOTSUPPORTED", 0x80004005: "FAIL", 0x8013135B: "NOT_YET_AVAILABLE", 0x80131371: "RUNTIME_UNINITIALIZED",
	0x80070057: "INVALIDARG", 0x8007007A: "INSUFFICIENT_BUFFER", 0x800700CB: "ENVVAR_NOT_FOUND", 0x8013136A: "PROFILER_ALREADY_ACTIVE",
}

func resultName(v uint32) string {
	if n, ok := results[v]; ok {
		return fmt.Sprintf("%s (0x%08X)", n, v)
	}
	return fmt.Sprintf("0x%08X", v)
}

// A cursor reads the primitives of section 5.
type cursor struct {
	nettrace.Cursor
	it *Item
}

func newCursor(it *Item, b []byte) *cursor { return &cursor{nettrace.NewCursor(b), it} }

// text reads a counted string; null tells one that is absent.
func (c *cursor) text() (s string, null bool) {
	n := c.U32()
	if n == 0 {
		return "", true
	}
	if int64(n)*2 > int64(c.Len()) {
		c.Skip(c.Len() + 1) // beyond the end: the first failure sticks
		return "", true
	}
	b := c.Bytes(int(n) * 2)
	u := make([]uint16, n)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	if u[n-1] == 0 {
		u = u[:n-1]
	} else {
		c.it.Notes = append(c.it.Notes, "a string without its zero")
	}
	return string(utf16.Decode(u)), false
}

func (c *cursor) flag() bool { return c.U8() != 0 }

func (it *Item) add(name string, v any) { it.Fields = append(it.Fields, Field{Name: name, Value: v}) }

// add adds what was just read, unless the payload ended before it: what it does not hold is not told.
func (c *cursor) add(name string, v any) {
	if c.Err() == nil {
		c.it.add(name, v)
	}
}

func (c *cursor) addText(name string) {
	if s, null := c.text(); !null {
		c.it.add(name, s)
	}
}

func fieldUint(it *Item, name string) uint64 {
	for _, f := range it.Fields {
		if f.Name == name {
			v, _ := f.Value.(uint64)
			return v
		}
	}
	return 0
}

// userEvents reports whether the request asks for a session without a stream.
func (it *Item) userEvents() bool {
	return it.Set == setEventPipe && it.ID >= 6 && fieldUint(it, "session_type") == 1
}

func decodeAdvertise(it *Item, b []byte) {
	if len(b) < advertSize {
		it.Cut = true
		it.Notes = append(it.Notes, fmt.Sprintf("the record ends early: %d of %d bytes", len(b), advertSize))
		return
	}
	c := newCursor(it, b[8:advertSize])
	c.add("cookie", c.GUID().String())
	c.add("pid", c.U64())
}

// end notes what is odd about the end of a payload.
func (c *cursor) end() {
	switch {
	case c.Err() != nil && !c.it.Cut:
		c.it.Notes = append(c.it.Notes, "the payload ends early")
	case c.Err() == nil && c.Len() > 0:
		c.it.Notes = append(c.it.Notes, fmt.Sprintf("%d spare bytes at the end", c.Len()))
	}
}

func decodeRequest(it *Item, payload []byte) {
	name, ok := commands[[2]int{it.Set, it.ID}]
	if !ok {
		it.Name = fmt.Sprintf("(unknown command %02X %02X)", it.Set, it.ID)
		return
	}
	it.Name = name
	c := newCursor(it, payload)
	defer c.end()
	switch it.Set {
	case 1:
		c.addText("path")
		c.add("type", pick(c.U32(), "", "normal", "with heap", "triage", "full"))
		c.add("flags", uint64(c.U32()))
	case 3:
		if it.ID == 1 {
			c.add("timeout", uint64(c.U32()))
		}
		c.add("clsid", c.GUID().String())
		c.addText("path")
		if it.ID == 1 {
			n := c.U32()
			c.add("client_data_bytes", uint64(n))
			if int64(n) <= int64(c.Len()) {
				c.Skip(int(n))
			} else {
				c.Skip(c.Len() + 1)
			}
		}
	case setProcess:
		switch it.ID {
		case 3:
			c.addText("name")
			if v, null := c.text(); null {
				c.add("remove", true)
			} else {
				it.Fields = append(it.Fields, Field{Name: "value", Value: v, Secret: true})
			}
		case 5:
			c.add("type", pick(c.U32(), "", "all", "jitdump", "perfmap"))
		case 7:
			c.addText("assembly")
		}
	case setEventPipe:
		if it.ID == 1 {
			if id := c.U64(); c.Err() == nil {
				c.add("session", fmt.Sprintf("0x%X", id))
			}
			return
		}
		c.collect()
	}
}

func pick(n uint32, names ...string) string {
	if int(n) < len(names) && names[n] != "" {
		return names[n]
	}
	return strconv.FormatUint(uint64(n), 10)
}

// collect reads the request of a CollectTracing command (section 6.1).
func (c *cursor) collect() {
	it := c.it
	kind := uint32(0)
	if it.ID >= 6 {
		kind = c.U32()
		c.add("session_type", uint64(kind))
	}
	if kind != 1 {
		c.add("buffer_mb", uint64(c.U32()))
		c.add("format", pick(c.U32(), "netperf", "nettrace"))
	}
	switch {
	case it.ID >= 5:
		c.add("rundown_keyword", fmt.Sprintf("0x%X", c.U64()))
	case it.ID >= 3:
		c.add("rundown", c.flag())
	}
	if it.ID >= 4 && kind != 1 {
		c.add("stackwalk", c.flag())
	}
	count := c.U32()
	var list []Provider
	for i := uint32(0); i < count && c.Err() == nil; i++ {
		p := Provider{Keywords: c.U64(), Level: c.U32()}
		p.Hex = fmt.Sprintf("0x%X", p.Keywords)
		p.Name, _ = c.text()
		if c.Err() != nil {
			break
		}
		if it.ID < 6 && i == count-1 && c.Len() < 4 {
			// The arguments of the last provider are missing, or two zero bytes stand for
			// them: clients do that, and the runtime takes it by chance.
			if n := c.Len(); n == 2 {
				it.Notes = append(it.Notes, "client bug: an empty string without its count")
			} else {
				it.Notes = append(it.Notes, "client bug: the arguments of the last provider are missing")
			}
			c.Skip(c.Len())
			list = append(list, p)
			break
		}
		p.Arguments, _ = c.text()
		if it.ID >= 6 {
			p.Filter = c.filter()
		}
		if kind == 1 {
			if s, null := c.text(); !null {
				p.Filter = strings.TrimSpace(p.Filter + " tracepoint " + s)
			}
			for n := c.U32(); n > 0 && c.Err() == nil; n-- {
				s, _ := c.text()
				if ids := c.ids(); c.Err() == nil {
					p.Filter = strings.TrimSpace(p.Filter + " tracepoint " + s + " for " + ids)
				}
			}
		}
		list = append(list, p)
	}
	if len(list) > 0 {
		it.add("providers", list) // whole ones, also of a payload that ends early
	}
	if it.ID == 7 && kind == 0 {
		c.add("buffering", pick(c.U32(), "drop", "block"))
	}
}

// filter reads an event filter: on or off, and a list of ids.
func (c *cursor) filter() string {
	enable := c.flag()
	ids := c.ids()
	switch {
	case c.Err() != nil:
		return ""
	case enable && ids == "":
		return "no events"
	case enable:
		return "only " + ids
	case ids != "":
		return "all but " + ids
	}
	return ""
}

func (c *cursor) ids() string {
	var ids []string
	for n := c.U32(); n > 0 && c.Err() == nil; n-- {
		if id := c.U32(); c.Err() == nil {
			ids = append(ids, strconv.FormatUint(uint64(id), 10))
		}
	}
	return strings.Join(ids, ",")
}

func decodeResponse(it *Item, payload []byte, req *Item) {
	c := newCursor(it, payload)
	switch {
	case it.Set != setServer:
		it.Name = fmt.Sprintf("(no answer: set %02X)", it.Set)
		return
	case it.ID == 0xff:
		it.Name = "Error"
		c.add("result", resultName(c.U32()))
		if c.Len() > 0 {
			c.addText("message")
		}
		c.end()
		return
	case it.ID != 0:
		it.Name = fmt.Sprintf("(unknown answer %02X)", it.ID)
		return
	}
	it.Name = "OK"
	defer c.end()
	switch {
	case req == nil && len(payload) == 8, req != nil && req.Set == setEventPipe:
		c.add("session", fmt.Sprintf("0x%X", c.U64()))
	case req != nil && req.Set == setProcess && req.ID == 2, req == nil && len(payload) == 6:
		c.add("bytes", uint64(c.U32()))
		c.U16()
	case req != nil && req.Set == setProcess && (req.ID == 0 || req.ID == 4 || req.ID == 8):
		c.processInfo(req.ID)
	case len(payload) == 4:
		if v := c.U32(); v != 0 {
			c.add("result", resultName(v))
		}
	case len(payload) > 0:
		c.Skip(len(payload))
		c.add("payload_bytes", uint64(len(payload)))
	}
}

// processInfo reads the answer to ProcessInfo, ProcessInfo2 and ProcessInfo3.
func (c *cursor) processInfo(id int) {
	version := uint32(0)
	if id == 8 {
		version = c.U32()
		c.add("version", uint64(version))
	}
	c.add("pid", c.U64())
	c.add("cookie", c.GUID().String())
	c.addText("command_line")
	c.addText("os")
	c.addText("arch")
	if id >= 4 {
		c.addText("entry_assembly")
		c.addText("clr_version")
	}
	if id == 8 && version >= 1 {
		c.addText("runtime_identifier")
		c.Skip(c.Len()) // newer versions append
	}
}

// environment reads the block that follows the answer to ProcessEnvironment.
func environment(b []byte) []Field {
	it := &Item{}
	c := newCursor(it, b)
	var out []Field
	for n := c.U32(); n > 0 && c.Err() == nil; n-- {
		s, null := c.text()
		if null {
			continue
		}
		// Names may begin with = on Windows.
		name, value := s, ""
		if i := strings.IndexByte(s[min(1, len(s)):], '='); i >= 0 {
			name, value = s[:i+1], s[i+2:]
		}
		out = append(out, Field{Name: name, Value: value, Secret: true})
	}
	return out
}
