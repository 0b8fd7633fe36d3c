package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tracefix/tracefix/internal/output"
)

// interruptedText is what an interrupted command says that has nothing of its own to say.
const interruptedText = "tracefix: interrupted; no unfinished file is left, and what went to standard output is not all"

// How long a command may take to end in its own way after a signal. Not every loop asks whether
// it is to end; what it makes is temporary until it is whole, so that it can be cut off anywhere.
const (
	usualPatience = 25 * time.Millisecond
	batchPatience = 90 * time.Millisecond // says what is done
	remote        = 10 * time.Second      // has something to say to a bucket before it ends
	endless       = time.Duration(1<<63 - 1)
)

// oneSignal is how far apart two signals may be that are one: timeout(1) sends its own to the command
// and then to the group that both are in. Nobody presses Ctrl+C twice as fast.
const oneSignal = 100 * time.Millisecond

// An ending is how the process comes to its end.
type ending struct {
	told     chan os.Signal
	cancel   context.CancelFunc
	patience atomic.Int64
	words    atomic.Pointer[func() string]
}

type endingKey struct{}

// signals returns a context that ends with the first signal, and what watches over that.
func signals() (context.Context, *ending) {
	e := &ending{told: make(chan os.Signal, 2)}
	e.patience.Store(int64(usualPatience))
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // the terminal went away; under nohup it may
		list = append(list, syscall.SIGHUP)
	}
	signal.Notify(e.told, list...)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), endingKey{}, e))
	e.cancel = cancel
	return ctx, e
}

// beInNoHurry gives a command, whose end by a signal is more than to stop, the time for it.
func beInNoHurry(ctx context.Context, patience time.Duration) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.patience.Store(int64(patience))
	}
}

// lastWords has the process say more than that it was interrupted if the command takes too long to end.
func lastWords(ctx context.Context, words func() string) {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		e.words.Store(&words)
	}
}

// watch returns the code of a run, or that of an interruption if the run has not ended a moment
// after the first signal, or at the second.
func (e *ending) watch(run func() int) int {
	code := make(chan int, 1)
	go func() { code <- run() }()
	select {
	case c := <-code:
		return c
	case <-e.told:
	}
	first := time.Now()
	e.cancel()
	patience := time.After(time.Duration(e.patience.Load()))
	for again := true; again; {
		select {
		case c := <-code:
			output.Abandon() // of steps that have not noticed yet
			return c
		case <-e.told:
			again = time.Since(first) < oneSignal
		case <-patience:
			again = false
		}
	}
	output.Abandon()
	text := interruptedText
	if words := e.words.Load(); words != nil {
		text = "tracefix: " + (*words)()
	}
	fmt.Fprintln(os.Stderr, clearLine(os.Stderr)+text)
	return exitInterrupted
}
