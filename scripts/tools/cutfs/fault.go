package cutfs

import "syscall"

// Op is a kind of operation that can be made to fail.
type Op int

// The kinds.
const (
	OpWrite Op = iota + 1 // write and truncate
	OpSync                // of a file or a folder
	OpName                // create, rename, unlink
)

func (o Op) String() string { return [...]string{"none", "write", "sync", "name"}[o] }

// Fault makes operations of a kind fail: the After-th from now on, and with Lasting all
// that follow until Heal.
type Fault struct {
	Op      Op
	After   int // 1 is the next
	Err     syscall.Errno
	Lasting bool
	Dead    bool // the disk loses its power at that moment: Cut tells what survived
	hits    int
}

// Fail begins a fault; it takes the place of an earlier one.
func (d *Disk) Fail(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Heal ends the fault and tells how many operations it failed.
func (d *Disk) Heal() (hits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hits = d.fault.hits
	d.fault = Fault{}
	return hits
}

// Hits tells how many operations the fault has failed so far.
func (d *Disk) Hits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault.hits
}

// enter is called at the beginning of each operation, with the lock held; op 0 is one that no
// fault concerns.
func (d *Disk) enter(op Op) syscall.Errno {
	if d.dead {
		return syscall.EIO
	}
	switch op {
	case OpWrite:
		d.Stats.Writes++
	case OpSync:
		d.Stats.Syncs++
	case OpName:
		d.Stats.Names++
	default:
		return 0
	}
	f := &d.fault
	if f.Op != op || (f.After <= 0 && !f.Lasting) {
		return 0
	}
	if f.After--; f.After > 0 || (f.After < 0 && !f.Lasting) {
		return 0
	}
	f.hits++
	if f.Dead {
		d.dead = true
		return syscall.EIO
	}
	return f.Err
}
