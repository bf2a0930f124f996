package load

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// UntilSignal gives a context that ends when the tool is asked to end. A pipe that
// nobody reads becomes an error of the write instead of the end of the process, so that
// what was started is stopped and what was made is removed.
func UntilSignal() (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}
