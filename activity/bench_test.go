package activity

import (
	"encoding/binary"
	"testing"
)

// BenchmarkBuilder makes the tree of 20,000 requests with three steps each, on 8 threads. Its bytes
// are those of the ids.
func BenchmarkBuilder(b *testing.B) {
	var events []Event
	add := func(name string, op Opcode, id, related ID, thread int) {
		events = append(events, Event{Time: int64(len(events)), Thread: uint64(1 + thread), Process: 7, Provider: "Some-Provider", Name: name, Opcode: op, ID: id, Related: related})
	}
	id := func(nums ...uint32) ID {
		id, err := Encode(NewPath(nums...).WithProcess(7), EncoderOld)
		if err != nil {
			b.Fatal(err)
		}
		return id
	}
	for i := range uint32(20_000) {
		thread := int(i % 8)
		request := id(1, i+1)
		add("RequestStart", Start, request, ID{}, thread)
		for step := range uint32(3) {
			add("StepStart", Start, id(1, i+1, step+1), request, thread)
			add("StepStop", Stop, id(1, i+1, step+1), ID{}, thread)
		}
		add("RequestStop", Stop, request, ID{}, thread)
	}
	b.SetBytes(int64(32 * len(events)))
	b.ReportAllocs()
	for b.Loop() {
		tree := NewBuilder(nil)
		for i := range events {
			tree.Add(&events[i])
		}
		if rows := tree.FinishRows(); rows.Len() != 80_000 {
			b.Fatal(rows.Len())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}

// BenchmarkIDSet asks for each of two million ids, of which a set has the half.
func BenchmarkIDSet(b *testing.B) {
	const n = 1_000_000
	of := func(i int) (id ID) {
		binary.LittleEndian.PutUint64(id[:], uint64(i))
		return id
	}
	s := NewIDSet(n)
	for i := range n {
		s.Add(0, of(2*i))
	}
	b.SetBytes(2 * n * int64(len(ID{})))
	b.ReportAllocs()
	for b.Loop() {
		found := 0
		for i := range 2 * n {
			if s.Has(0, of(i)) {
				found++
			}
		}
		if found != n {
			b.Fatal(found)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*n), "ns/id")
	b.ReportMetric(float64(8*len(s.slots))/n, "B/id")
}
