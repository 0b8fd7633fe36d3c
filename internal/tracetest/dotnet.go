// Package tracetest makes synthetic traces and checks what is written, for tests.
package tracetest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A DotnetWriter writes Chromium JSON as dotnet-trace does, by the algorithm of
// dotnet-trace-convert.md section 3: samples with their synthetic frames become
// begin and end events, thread after thread.
type DotnetWriter struct {
	w     *bufio.Writer
	n     int64
	comma bool
	ids   map[string]int
	info  []dotnetFrame

	tid  int64
	last float64
	prev []dotnetSpan
}

type dotnetFrame struct {
	name, category string
	parent         int
}

type dotnetSpan struct {
	time   float64
	metric float32
	id     int
}

// NewDotnetWriter begins a file.
func NewDotnetWriter(w io.Writer) *DotnetWriter {
	d := &DotnetWriter{w: bufio.NewWriterSize(w, 1<<16), ids: map[string]int{}}
	d.print(`{"otherData": { "name": "test.chromium", "exporter": "Microsoft.Diagnostics.Tracing.TraceEvent@3.1.23.0" }, "traceEvents": [`)
	return d
}

func (d *DotnetWriter) print(s string) {
	n, _ := d.w.WriteString(s) // an error sticks and comes out of Flush
	d.n += int64(n)
}

// Bytes returns how much was written so far.
func (d *DotnetWriter) Bytes() int64 { return d.n }

// Thread ends the thread before and begins another.
func (d *DotnetWriter) Thread(tid int64) {
	d.end(0)
	d.tid, d.last = tid, 0
}

// Sample adds a stack of full names, outermost first, with its synthetic frames.
// The time is in ms, the metric is the time that it covers.
func (d *DotnetWriter) Sample(time float64, metric float32, stack []string) {
	n := 0
	caller := -1
	ids := make([]int, len(stack))
	for i, name := range stack {
		id, ok := d.ids[name]
		if !ok {
			id = len(d.info)
			d.ids[name] = id
			f := dotnetFrame{name: name, parent: caller}
			if j := strings.IndexByte(name, '!'); j > 0 {
				f.category, f.name = name[:j], name[j+1:]
			}
			d.info = append(d.info, f)
		}
		ids[i], caller = id, id
	}
	for n < len(d.prev) && n < len(ids) {
		p := &d.prev[n]
		if p.id != ids[n] || p.time+float64(float64(p.metric)*1.001) < time {
			break
		}
		p.metric += metric
		n++
	}
	d.end(n)
	for _, id := range ids[n:] {
		d.last = max(d.last, time)
		d.event('B', id, d.last)
		d.prev = append(d.prev, dotnetSpan{time, metric, id})
	}
}

func (d *DotnetWriter) end(n int) {
	for len(d.prev) > n {
		p := d.prev[len(d.prev)-1]
		d.prev = d.prev[:len(d.prev)-1]
		d.last = max(d.last, p.time+float64(p.metric))
		d.event('E', p.id, d.last)
	}
}

var jsEscaper = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "'", `\u0027`, "<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "\n", `\n`)

func (d *DotnetWriter) event(ph byte, id int, at float64) {
	if d.comma {
		d.print(", ")
	}
	d.comma = true
	d.print(`{"name": "` + jsEscaper.Replace(d.info[id].name) + `", "cat": "sampleEvent", "ph": "` + string(ph) + `", "ts": ` +
		strconv.FormatFloat(at*1000, 'f', -1, 64) + `, "pid": 0, "tid": ` + strconv.FormatInt(d.tid, 10) + `, "sf": ` + strconv.Itoa(id) + `}`)
}

// Close ends the file.
func (d *DotnetWriter) Close() error {
	d.end(0)
	d.print(`], "displayTimeUnit": "ms", "stackFrames": {`)
	for i, f := range d.info {
		if i > 0 {
			d.print(", ")
		}
		d.print(fmt.Sprintf(`"%d": {"name": "%s", "category": "%s"`, i, jsEscaper.Replace(f.name), f.category))
		if f.parent >= 0 {
			d.print(fmt.Sprintf(`, "parent": %d`, f.parent))
		}
		d.print("}")
	}
	d.print("}}")
	return d.w.Flush()
}

// Roots returns the synthetic frames above the stacks of a thread.
func Roots(pid, tid int64) []string {
	return []string{fmt.Sprintf("Process64 Test (%d) Args: run", pid), "(Non-Activities)", "Threads", fmt.Sprintf("Thread (%d)", tid)}
}

// A Walk is a seeded dotnet-trace file of any size: threads that walk up and down a
// tree of calls, with stacks cut at Limit.
type Walk struct {
	Seed    uint64
	Threads int     // at least 1
	Bytes   int64   // size to reach about, divided among the threads
	Deep    float64 // share of the time spent below Limit, 0 to 1
	Limit   int     // zero means 100
	Whole   bool    // stacks are not cut
	// Repeat is the number of samples after which a thread does the same again, as
	// services do; zero: never. A walk that does not repeat has ever new stacks.
	Repeat int
	// Truth, if set, is given the whole stack of each sample, without synthetic
	// frames; valid during the call.
	Truth func(tid int64, ms float64, stack []string)
}

// eventSize is what an event of a Walk takes.
const eventSize = 215

// WriteTo writes the file.
func (k Walk) WriteTo(w io.Writer) (int64, error) {
	if k.Limit == 0 {
		k.Limit = 100
	}
	k.Threads = max(k.Threads, 1)
	rnd := rand.New(rand.NewPCG(k.Seed, 1))
	d := NewDotnetWriter(w)
	names := make([][]string, 12) // by family and level
	for f := range names {
		for level := range 400 {
			names[f] = append(names[f], fmt.Sprintf("Lab.Walk!Lab.Walk.Family%02d.Level%03d(int32,class System.Collections.Generic.Dictionary`2<int32,class System.String>)", f, level))
		}
	}
	for th := range k.Threads {
		tid := int64(1000 + th)
		d.Thread(tid)
		roots := Roots(4711, tid)
		full := []string{"System.Private.CoreLib!System.Threading.Thread.StartCallback()", "Lab.Walk!Lab.Walk.Program.Run()"}
		// Times of a 1024th of a millisecond have no rounding noise for a while.
		ms := 5 + float64(rnd.IntN(1024))/1024
		size := int64(0) // a measure that is the same with and without the cut
		target := 20
		for n := 0; n == 0 || size < k.Bytes/int64(k.Threads); n++ {
			step := n
			if k.Repeat > 0 {
				if step = n % k.Repeat; step == 0 {
					rnd = rand.New(rand.NewPCG(k.Seed, 2+uint64(th)))
					full = full[:2]
				}
			}
			if step%40 == 0 { // a new depth to walk to
				target = 3 + rnd.IntN(k.Limit-20)
				if rnd.Float64() < k.Deep {
					target = k.Limit + 2 + rnd.IntN(150)
				}
			}
			steps := 1 + rnd.IntN(9)
			if len(full) > k.Limit {
				size += int64(2*k.Limit) * eventSize
			} else {
				size += int64(2*steps) * eventSize
			}
			for ; steps > 0; steps-- {
				if len(full) > target || len(full) > 3 && rnd.IntN(4) == 0 {
					full = full[:len(full)-1]
				} else {
					// Which family follows is settled by the caller, but for one in four.
					f := (len(full)*7 + len(full[len(full)-1])) % 3
					if rnd.IntN(4) == 0 {
						f = rnd.IntN(len(names))
					}
					full = append(full, names[f][len(full)])
				}
			}
			length := float32(1024+rnd.IntN(256)) / 1024
			if k.Truth != nil {
				k.Truth(tid, ms, full)
			}
			leaf := "CPU_TIME"
			if rnd.IntN(5) == 0 {
				leaf = "UNMANAGED_CODE_TIME"
			}
			rec := full
			if !k.Whole {
				rec = full[max(0, len(full)-k.Limit):]
			}
			stack := append(append(append([]string{}, roots...), rec...), leaf)
			d.Sample(ms, length, stack)
			ms += float64(length)
		}
	}
	err := d.Close()
	return d.Bytes(), err
}
