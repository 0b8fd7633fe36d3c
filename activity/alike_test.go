package activity_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tracefix/tracefix/activity"
)

// TestOpenRowsOfOneID: of requests with one id, as the encoder of .NET 10 gives it to the 11th to 255th of
// a connection, Kestrel's are told apart by what they tell, Hosting's by those, which stand
// beside them on their thread.
func TestOpenRowsOfOneID(t *testing.T) {
	id := func(path ...uint32) activity.ID {
		id, err := activity.Encode(activity.NewPath(path...), activity.EncoderNew)
		require.NoError(t, err)
		return id
	}
	connection, hosting, kestrel := id(1, 117), id(1, 117, 12), id(1, 117, 12, 1)
	b, at := activity.NewBuilder(nil), int64(0)
	add := func(thread uint64, name string, op activity.Opcode, id, related activity.ID, key string) {
		at++
		b.Add(&activity.Event{Time: at, Thread: thread, Process: 7, Provider: "P", Name: name, Opcode: op, ID: id, Related: related, Key: key})
	}
	begin := func(thread uint64) { add(thread, "HostingStart", activity.Start, hosting, connection, "") }
	inner := func(thread uint64, key string) { add(thread, "KestrelStart", activity.Start, kestrel, hosting, key) }
	end := func(thread uint64, key string) {
		add(thread, "KestrelStop", activity.Stop, kestrel, activity.ID{}, key)
	}
	done := func(thread uint64) { add(thread, "HostingStop", activity.Stop, hosting, activity.ID{}, "") }

	add(9, "ConnectionStart", activity.Start, connection, activity.ID{}, "")
	begin(1)
	begin(2)
	inner(1, "a")
	inner(2, "b")
	begin(1)
	inner(1, "c")
	begin(2)
	inner(2, "d")
	end(3, "b")
	done(3)
	end(3, "a")
	end(5, "c")
	done(5)
	done(3)
	done(1) // Kestrel did not tell that it ends, and no other one is left

	type row struct {
		parent      int
		start, stop int64
		guess       bool
	}
	var got []row
	for _, r := range b.Finish().Rows[1:] {
		got = append(got, row{r.Parent, r.Start, r.Stop, r.Guess})
	}
	assert.Equal(t, []row{
		{0, 2, 15, false}, {0, 3, 11, false}, {1, 4, 12, false}, {2, 5, 10, false},
		{0, 6, 14, false}, {5, 7, 13, false}, {0, 8, 16, false}, {7, 9, 16, false},
	}, got)
}
