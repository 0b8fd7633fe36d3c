package nettrace

import (
	"fmt"
	"strconv"
	"time"
)

const (
	magic       = "Nettrace"
	serialMagic = "\x14\x00\x00\x00!FastSerialization.1"
)

// parseTrace reads the payload of the Trace object or block, which b holds
// whole. Odd values are replaced and told through warn: a recording must not be
// lost over its date.
func (h *Header) parseTrace(c *Cursor, warn func(where string, format string, args ...any)) {
	if h.Version <= 2 {
		c.Skip(4) // forward-reference index
	}
	for i := range h.SyncTimeRaw {
		h.SyncTimeRaw[i] = c.U16()
	}
	h.SyncQPC = c.I64()
	h.Frequency = c.I64()
	h.PointerSize = 8
	if h.Version >= 3 {
		h.PointerSize = int(c.I32())
	}
	switch {
	case h.Version == 6:
		n := c.I32()
		for i := int32(0); i < n && c.err == nil; i++ {
			if i == maxPairs {
				c.fail(ErrTooLarge)
			}
			kv := KeyValue{c.StringV().String(), c.StringV().String()}
			if c.err == nil {
				h.KeyValues = append(h.KeyValues, kv)
				h.keyValue(kv)
			}
		}
	case h.Version >= 3:
		h.ProcessID = int(c.I32())
		h.Processors = int(c.I32())
		h.SamplingInterval = time.Duration(c.I32())
	}
	if t, ok := systemTime(h.SyncTimeRaw); ok && t.Year() >= firstYear && t.Year() <= lastYear {
		h.SyncTime = t
	} else {
		warn("Trace", "start time %v is not a date of a recording: times are relative only", h.SyncTimeRaw)
	}
	if h.Frequency <= 0 {
		warn("Trace", "clock frequency %d: 1 GHz is assumed", h.Frequency)
		h.Frequency = 1e9
	}
	if h.PointerSize != 4 && h.PointerSize != 8 {
		warn("Trace", "pointer size %d: 8 is assumed", h.PointerSize)
		h.PointerSize = 8
	}
}

// keyValue takes over a pair of the Trace block of v6.
func (h *Header) keyValue(kv KeyValue) {
	n, err := strconv.ParseInt(kv.Value, 10, 64)
	if err != nil || n < 0 {
		return
	}
	switch kv.Key {
	case "ProcessId":
		h.ProcessID = int(n)
	case "HardwareThreadCount":
		h.Processors = int(n)
	case "ExpectedCPUSamplingRate":
		h.SamplingInterval = time.Duration(n)
	}
}

// KeyValue returns the value of a key of the v6 Trace block, "" if there is none.
func (h *Header) KeyValue(key string) string {
	for _, kv := range h.KeyValues {
		if kv.Key == key {
			return kv.Value
		}
	}
	return ""
}

// systemTime turns a SYSTEMTIME into a time, if it is one.
func systemTime(s [8]uint16) (time.Time, bool) {
	year, month, day := int(s[0]), int(s[1]), int(s[3])
	hour, minute, second, milli := int(s[4]), int(s[5]), int(s[6]), int(s[7])
	if year < 1601 || year > 30827 || month < 1 || month > 12 || day < 1 || day > 31 ||
		hour > 23 || minute > 59 || second > 59 || milli > 999 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, milli*1e6, time.UTC)
	return t, t.Day() == day // the 31st of a short month is none
}

// Years of which all formats hold the times: in nanoseconds since 1970, which have 63 bits. Another
// one is that of a clock that was never set, or of a flipped bit.
const (
	firstYear = 1970
	lastYear  = 2261
)

// appendSystemTime is the reverse of systemTime.
func appendSystemTime(t time.Time) (s [8]uint16) {
	t = t.UTC()
	return [8]uint16{uint16(t.Year()), uint16(t.Month()), uint16(t.Weekday()), uint16(t.Day()),
		uint16(t.Hour()), uint16(t.Minute()), uint16(t.Second()), uint16(t.Nanosecond() / 1e6)}
}

// versionError refuses a version, which is a newer one or no version at all.
func versionError(offset int64, format string, args ...any) error {
	return &FormatError{Offset: offset, Where: "header", Err: fmt.Errorf("%w: "+format+"; a newer tracefix may know it, and if the recorder is not newer the file is damaged: copy it again", append([]any{ErrVersion}, args...)...)}
}
