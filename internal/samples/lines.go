package samples

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/tracefix/tracefix/internal/input"
)

// maxLine bounds a line: a stack of 10,000 frames with long names takes 2 MiB.
const maxLine = 16 << 20

var (
	errLine = errors.New("a line of more than 16 MiB, which no stack needs")
	errZero = errors.New("bytes of zero in text, which nobody writes: the disk or the copy is damaged")
	errUTF8 = errors.New("bytes that are not UTF-8")
)

// lines calls each for every line of text with its offset, without its end. A line that no text
// can be is told and left out. ended tells whether the last one has an end.
func lines(ctx context.Context, r io.Reader, b *builder, each func(offset int64, line []byte)) (ended bool, err error) {
	in := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	offset := int64(0)
	for n := 0; ; n++ {
		if n&(1<<12-1) == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		line, err := in.ReadSlice('\n')
		size := int64(len(line))
		if err == bufio.ErrBufferFull {
			long = append(long[:0], line...)
			for err == bufio.ErrBufferFull {
				line, err = in.ReadSlice('\n')
				size += int64(len(line))
				if len(long) <= maxLine {
					long = append(long, line...)
				}
			}
			line = long
		}
		if err != nil && err != io.EOF && !input.Broken(err) {
			return false, err
		}
		text := bytes.TrimRight(line, "\r\n")
		if offset == 0 {
			text = bytes.TrimPrefix(text, input.BOM)
		}
		switch {
		case len(text) > maxLine:
			b.warn(offset, "%w", errLine)
		case bytes.IndexByte(text, 0) >= 0:
			b.warn(offset+int64(bytes.IndexByte(text, 0)), "%w", errZero)
		case !utf8.Valid(text):
			b.warn(offset+int64(validUTF8(text)), "%w", errUTF8)
		default:
			each(offset, text)
		}
		offset += size
		if err == io.EOF {
			return size == 0, nil
		}
		if err != nil {
			b.warn(offset, "%w", err)
			return true, nil
		}
	}
}

// validUTF8 is the length of the part before the first byte that is no UTF-8.
func validUTF8(b []byte) (n int) {
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}
