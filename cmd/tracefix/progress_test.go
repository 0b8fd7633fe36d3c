package main

import (
	"cmp"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/internal/report"
)

// One bar goes over all stages and never back, whatever order things happen in.
func TestCourse(t *testing.T) {
	read := int64(0)
	out := &report.Progress{}
	w := out.Writer(io.Discard)
	begin := time.Now()
	c := &course{read: func() int64 { return read }, stored: 100, out: out, readings: 1, work: 0.25, write: 0.25, began: begin}
	last := 0.0
	see := func(at time.Duration, stage string) float64 {
		f, s := c.at(begin.Add(at))
		assert.Equal(t, stage, s, at)
		assert.GreaterOrEqual(t, f, last, at)
		assert.Less(t, f, 1.0, at)
		last = f
		return f
	}
	read = 50
	assert.Equal(t, 0.25, see(time.Second, "reading"))
	assert.Equal(t, " 0 MB/s", c.rate(begin.Add(time.Second)))
	read = 100
	assert.Equal(t, 0.5, see(2*time.Second, "repairing"))
	half := see(2500*time.Millisecond, "repairing")
	assert.Greater(t, half, 0.5)
	assert.LessOrEqual(t, see(time.Hour, "repairing"), 0.75, "however long it takes")
	out.Expect(1000)
	_, err := w.Write(make([]byte, 500))
	require.NoError(t, err)
	assert.InDelta(t, 0.875, see(time.Hour, "writing"), 1e-9)
	out.Expect(5000) // more than was thought
	see(time.Hour, "writing")
	out.Expect(100) // less
	see(time.Hour, "writing")
}

// The bar is one line, however narrow the terminal is and whatever the trace is called.
func TestBarFits(t *testing.T) {
	c := &course{read: func() int64 { return 30e6 }, stored: 100e6, out: &report.Progress{}, readings: 1, began: time.Now()}
	for _, name := range []string{"a.nettrace", strings.Repeat("länger ", 12) + "b.nettrace", "\x1b[2Jc.nettrace"} {
		c.name = name
		for _, width := range []int{0, 60, 80, 120} {
			line := c.bar(c.began.Add(3*time.Second), width)
			assert.Less(t, utf8.RuneCountInString(line), cmp.Or(width, 80), line)
			assert.Contains(t, line, ".nettrace: reading 10 MB/s  30 % ")
			assert.Contains(t, line, " 3s, 7s left")
			assert.NotContains(t, line, "\x1b")
		}
	}
	c.name = "a.nettrace"
	assert.Equal(t, "a.nettrace: reading 10 MB/s  30 % |█████████                     | 3s, 7s left", c.bar(c.began.Add(3*time.Second), 80))
}

// A trace that is written while it is read again has no length of its own.
func TestCourseOfRewrite(t *testing.T) {
	read := int64(100)
	out := &report.Progress{}
	c := &course{read: func() int64 { return read }, stored: 100, out: out, readings: 1, again: true, work: 0.2, write: 0.4, began: time.Now()}
	_, stage := c.at(c.began.Add(time.Second))
	assert.Equal(t, "repairing", stage)
	_, err := out.Writer(io.Discard).Write(make([]byte, 10))
	require.NoError(t, err)
	read = 150
	f, stage := c.at(c.began.Add(2 * time.Second))
	assert.Equal(t, "writing", stage)
	assert.InDelta(t, 0.8, f, 1e-9)
}

// What memory does not hold is read a second time: that is measured, not guessed by the time.
func TestCourseOfSecondReading(t *testing.T) {
	read := int64(100)
	c := &course{read: func() int64 { return read }, stored: 100, out: &report.Progress{}, readings: 1, work: 0.7, began: time.Now()}
	first, stage := c.at(c.began.Add(time.Second))
	assert.Equal(t, "working", stage)
	assert.InDelta(t, 0.3, first, 0.01)
	read = 150
	half, _ := c.at(c.began.Add(time.Hour))
	assert.InDelta(t, 0.65, half, 1e-9)
	read = 200
	whole, _ := c.at(c.began.Add(2 * time.Hour))
	assert.InDelta(t, 0.995, whole, 1e-9)
}
