package nettrace

import "errors"

// A Consumer takes the events of a reading, in order of time: readings that serve several at once
// (tracefix.Scan, tracefix.ReadOptions.Also) tell each of them every event.
type Consumer interface {
	// Begin is called once, when the header has been read. r is for asking what it knows;
	// nobody but the reading reads from it. Until End only its Nanos, SwitchedOut and Header may be asked: it
	// reads ahead meanwhile. An event knows the losses before it.
	Begin(r *Reader)
	// Event takes an event, which is valid during the call. ErrStop means that this consumer
	// has enough; any other error ends the reading for all.
	Event(ev *Event) error
	// End is called once after the last event, damage or not, but not after an error.
	End()
}

// ErrStop is what Consumer.Event returns to get no more events.
var ErrStop = errors.New("enough")
