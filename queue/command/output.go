package command

import (
	"fmt"
	"unicode/utf8"
)

// Kept of a command's output: how it began, and how it ended, where the reason of a
// failure stands. Together with the line between them 64 KiB.
const (
	maxHead = 32 << 10
	maxTail = 32<<10 - 64
)

// output keeps what a command writes, standard output and error in the order of
// writing. It takes any amount, so that no command waits for a reader.
type output struct {
	head, tail []byte
	left       int64 // bytes between the two
}

func (o *output) Write(b []byte) (int, error) {
	n := len(b)
	take := min(n, maxHead-len(o.head))
	o.head, b = append(o.head, b[:take]...), b[take:]
	o.tail = append(o.tail, b...)
	if over := len(o.tail) - maxTail; over > 0 {
		o.left += int64(over)
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	return n, nil
}

// bytes are what was kept; nil for nothing.
func (o *output) bytes() []byte {
	if o.left == 0 {
		return append(o.head, o.tail...)
	}
	tail := o.tail
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return append(fmt.Appendf(o.head, "\n[%d bytes left out]\n", o.left), tail...)
}
