package main

import (
	"io"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/tracefix/tracefix/internal/input"
)

// showProgress draws a bar on stderr while in is read, if stderr is a terminal. A
// trace is read once or twice, so the bar starts anew for the second reading.
func showProgress(cli *CLI, std streams, in *input.File) (stop func()) {
	if cli.Quiet || in.Stored < 1<<20 || !isTerminal(std.err) {
		return func() {}
	}
	bar := newBar(std.err, filepath.Base(in.Name), in.Stored)
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		t := time.NewTicker(100 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-done:
				bar.Finish()
				return
			case <-t.C:
				n := in.BytesRead()
				if n > 0 {
					n = (n-1)%in.Stored + 1
				}
				bar.Set64(n)
			}
		}
	}()
	return func() { close(done); <-finished }
}

// newBar returns a bar whose clock runs: left alone it would start with what is read
// first, and tell a rate of many GB/s.
func newBar(w io.Writer, name string, size int64) *progressbar.ProgressBar {
	bar := progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(name),
		progressbar.OptionShowBytes(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	bar.StartWithoutRender()
	return bar
}
