// Package cutfs is a file system in memory whose power can be cut. What was written and not
// synced is lost at a cut: all of it, a random part of its sectors, or with a page torn in
// two. A folder's entries survive only once the folder itself was synced. It can also
// fail chosen operations, as a disk does that is full or broken.
//
// The model is the strict one of POSIX: syncing a file says nothing of its name, and a
// write that was not synced may be lost whatever came after it. Within a folder the
// changes survive in their order, as a journal keeps them. A sync that fails does so for good: what
// it should have written stays readable and is written by no later one.
package cutfs

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Sector is what a device writes whole or not at all.
const Sector = 512

// Loss is what a cut does to writes that were not synced.
type Loss int

// The losses.
const (
	Drop   Loss = iota // all are gone
	Random             // each sector survives or not
	Tear               // each write survives up to a sector in its middle, or not
)

func (l Loss) String() string { return [...]string{"drop", "random", "tear"}[l] }

// Losses are all of them.
var Losses = []Loss{Drop, Random, Tear}

// Disk holds files and what of them would survive now. It is safe for use by several
// goroutines.
type Disk struct {
	mu    sync.Mutex
	root  *node
	ino   uint64
	dead  bool // the power is cut: every operation fails
	fault Fault
	Stats Stats
}

// Stats counts what was asked of the disk.
type Stats struct{ Writes, Syncs, Names int }

// node is a file or a folder.
type node struct {
	ino   uint64
	mode  uint32 // with its type
	mtime time.Time

	data, synced []byte // of a file: what is read, what would survive
	writes       []change

	names, syncedNames map[string]*node // of a folder
	renames            []naming
}

// change is a write, or with nil data a truncation to off, that was not synced.
type change struct {
	off  int64
	data []byte
}

// naming is a change of a folder's entry that was not synced; a nil node removes it.
type naming struct {
	name string
	node *node
}

// New makes an empty disk.
func New() *Disk {
	d := &Disk{}
	d.root = d.node(syscall.S_IFDIR | 0o700)
	d.root.syncedNames = map[string]*node{}
	return d
}

func (d *Disk) node(mode uint32) *node {
	d.ino++
	n := &node{ino: d.ino, mode: mode, mtime: time.Now()}
	if n.dir() {
		n.names, n.syncedNames = map[string]*node{}, map[string]*node{}
	}
	return n
}

func (n *node) dir() bool { return n.mode&syscall.S_IFMT == syscall.S_IFDIR }

// write changes a file.
func (n *node) write(off int64, data []byte) {
	data = slices.Clone(data)
	n.data = apply(n.data, change{off, data})
	n.writes = append(n.writes, change{off, data})
	n.mtime = time.Now()
}

func (n *node) truncate(size int64) {
	n.data = apply(n.data, change{size, nil})
	n.writes = append(n.writes, change{size, nil})
	n.mtime = time.Now()
}

// sync makes all of a file's bytes, or a folder's entries, survive.
func (n *node) sync() {
	for _, c := range n.writes {
		n.synced = apply(n.synced, c)
	}
	n.writes = nil
	if n.dir() {
		n.syncedNames, n.renames = maps.Clone(n.names), nil
	}
}

// forget is what a sync that failed leaves behind: as on Linux the pages count as clean. They are
// read as before, and no later sync writes them unless somebody wrote them again.
func (n *node) forget() {
	n.writes = slices.DeleteFunc(n.writes, func(c change) bool { return c.data != nil })
}

// link gives name to node, or with nil takes the name away.
func (n *node) link(name string, to *node) {
	if to == nil {
		delete(n.names, name)
	} else {
		n.names[name] = to
	}
	n.renames = append(n.renames, naming{name, to})
	n.mtime = time.Now()
}

func apply(data []byte, c change) []byte {
	if c.data == nil {
		if int64(len(data)) > c.off {
			clear(data[c.off:]) // what grows back later reads as zeros
			return data[:c.off]
		}
		return grow(data, c.off)
	}
	data = grow(data, c.off+int64(len(c.data)))
	copy(data[c.off:], c.data)
	return data
}

func grow(data []byte, size int64) []byte {
	if n := size - int64(len(data)); n > 0 {
		data = append(data, make([]byte, n)...)
	}
	return data
}

// Cut cuts the power: from now on every operation fails, and the disk returned holds what
// survived.
func (d *Disk) Cut(loss Loss, rnd *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	after := &Disk{ino: d.ino}
	after.root = survive(d.root, loss, rnd, map[*node]*node{})
	return after
}

// survive copies what is left of a node. A file with two names is copied once.
func survive(n *node, loss Loss, rnd *rand.Rand, seen map[*node]*node) *node {
	if s := seen[n]; s != nil {
		return s
	}
	s := &node{ino: n.ino, mode: n.mode, mtime: n.mtime}
	seen[n] = s
	if !n.dir() {
		s.data = slices.Clone(n.synced)
		for _, c := range n.writes {
			s.data = part(s.data, c, loss, rnd)
		}
		s.synced = slices.Clone(s.data)
		return s
	}
	names := maps.Clone(n.syncedNames)
	if loss != Drop {
		for _, r := range n.renames[:rnd.IntN(len(n.renames)+1)] {
			if r.node == nil {
				delete(names, r.name)
			} else {
				names[r.name] = r.node
			}
		}
	}
	s.names = make(map[string]*node, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) { // in order: the seed decides, not the map
		s.names[name] = survive(names[name], loss, rnd, seen)
	}
	s.syncedNames = maps.Clone(s.names)
	return s
}

// part applies what of a change survives.
func part(data []byte, c change, loss Loss, rnd *rand.Rand) []byte {
	switch {
	case loss == Drop:
	case c.data == nil:
		if rnd.IntN(2) == 0 {
			data = apply(data, c)
		}
	case loss == Tear:
		if n := rnd.IntN(len(c.data)/Sector + 2); n > 0 {
			data = apply(data, change{c.off, c.data[:min(n*Sector, len(c.data))]})
		}
	default:
		for at := 0; at < len(c.data); at += Sector {
			if rnd.IntN(2) == 0 {
				data = apply(data, change{c.off + int64(at), c.data[at:min(at+Sector, len(c.data))]})
			}
		}
	}
	return data
}

// Unsynced tells how many writes and names would be lost now.
func (d *Disk) Unsynced() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := map[*node]bool{}
	var walk func(*node)
	walk = func(x *node) {
		if seen[x] {
			return
		}
		seen[x] = true
		n += len(x.writes) + len(x.renames)
		for _, c := range x.names {
			walk(c)
		}
	}
	walk(d.root)
	return n
}
