//go:build !unix

package tracetest

import "time"

// spent is the time of day, for want of the processor time of this process.
func spent() time.Duration { return time.Duration(time.Now().UnixNano()) }
