package cutfs

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Mount shows the disk at dir, an empty folder, until unmount is called.
func (d *Disk) Mount(dir string) (unmount func() error, err error) {
	keep := time.Hour // nobody changes the disk but through this mount
	server, err := fs.Mount(dir, &inode{d: d, n: d.root}, &fs.Options{
		AttrTimeout: &keep, EntryTimeout: &keep,
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "cutfs", Name: "cutfs", MaxWrite: 128 << 10, DisableXAttrs: true},
	})
	if err != nil {
		return nil, fmt.Errorf("mount cutfs at %s (root, or fusermount3, and /dev/fuse are wanted): %w", dir, err)
	}
	return func() error {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if err = server.Unmount(); err == nil || time.Now().After(end) {
				return err
			}
		}
	}, nil
}

// inode is a node in one mount.
type inode struct {
	fs.Inode
	d *Disk
	n *node
}

var _ = (interface {
	fs.NodeLookuper
	fs.NodeGetattrer
	fs.NodeSetattrer
	fs.NodeReaddirer
	fs.NodeCreater
	fs.NodeMkdirer
	fs.NodeMknoder
	fs.NodeUnlinker
	fs.NodeRmdirer
	fs.NodeRenamer
	fs.NodeLinker
	fs.NodeOpener
	fs.NodeReader
	fs.NodeWriter
	fs.NodeFsyncer
	fs.NodeStatfser
})((*inode)(nil))

// do runs f under the disk's lock, unless the operation fails.
func (i *inode) do(op Op, f func() syscall.Errno) syscall.Errno {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	if errno := i.d.enter(op); errno != 0 {
		return errno
	}
	return f()
}

func (i *inode) child(ctx context.Context, n *node, out *fuse.EntryOut) *fs.Inode {
	fill(n, &out.Attr)
	return i.NewInode(ctx, &inode{d: i.d, n: n}, fs.StableAttr{Mode: n.mode, Ino: n.ino})
}

func fill(n *node, a *fuse.Attr) {
	a.Ino, a.Mode, a.Size, a.Nlink = n.ino, n.mode, uint64(len(n.data)), 1
	a.Blocks, a.Blksize = (a.Size+511)/512, 4096
	a.SetTimes(nil, &n.mtime, &n.mtime)
}

// Lookup implements fs.NodeLookuper.
func (i *inode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	errno = i.do(0, func() syscall.Errno {
		n := i.n.names[name]
		if n == nil {
			return syscall.ENOENT
		}
		child = i.child(ctx, n, out)
		return 0
	})
	return child, errno
}

// Getattr implements fs.NodeGetattrer.
func (i *inode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return i.do(0, func() syscall.Errno {
		fill(i.n, &out.Attr)
		return 0
	})
}

// Setattr implements fs.NodeSetattrer. Modes and times survive at once: nothing hangs on them.
func (i *inode) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	op := Op(0)
	size, sized := in.GetSize()
	if sized {
		op = OpWrite
	}
	return i.do(op, func() syscall.Errno {
		if sized {
			i.n.truncate(int64(size))
		}
		if mode, ok := in.GetMode(); ok {
			i.n.mode = i.n.mode&syscall.S_IFMT | mode&0o7777
		}
		fill(i.n, &out.Attr)
		return 0
	})
}

// Readdir implements fs.NodeReaddirer.
func (i *inode) Readdir(context.Context) (list fs.DirStream, errno syscall.Errno) {
	errno = i.do(0, func() syscall.Errno {
		var entries []fuse.DirEntry
		for name, n := range i.n.names {
			entries = append(entries, fuse.DirEntry{Name: name, Mode: n.mode, Ino: n.ino})
		}
		slices.SortFunc(entries, func(a, b fuse.DirEntry) int { return int(hash(a.Name)) - int(hash(b.Name)) })
		list = fs.NewListDirStream(entries)
		return 0
	})
	return list, errno
}

// hash gives names an order that is no alphabet: nobody may rely on one.
func hash(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32() >> 1
}

func (i *inode) add(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	errno = i.do(OpName, func() syscall.Errno {
		if i.n.names[name] != nil {
			return syscall.EEXIST
		}
		n := i.d.node(mode)
		i.n.link(name, n)
		child = i.child(ctx, n, out)
		return 0
	})
	return child, errno
}

// Create implements fs.NodeCreater.
func (i *inode) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, errno := i.add(ctx, name, syscall.S_IFREG|mode&0o7777, out)
	return child, nil, 0, errno
}

// Mkdir implements fs.NodeMkdirer.
func (i *inode) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return i.add(ctx, name, syscall.S_IFDIR|mode&0o7777, out)
}

// Mknod implements fs.NodeMknoder: sockets.
func (i *inode) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return i.add(ctx, name, mode, out)
}

// Link implements fs.NodeLinker.
func (i *inode) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	errno = i.do(OpName, func() syscall.Errno {
		if i.n.names[name] != nil {
			return syscall.EEXIST
		}
		n := target.(*inode).n
		i.n.link(name, n)
		child = i.child(ctx, n, out)
		return 0
	})
	return child, errno
}

// Unlink implements fs.NodeUnlinker.
func (i *inode) Unlink(_ context.Context, name string) syscall.Errno {
	return i.do(OpName, func() syscall.Errno {
		if i.n.names[name] == nil {
			return syscall.ENOENT
		}
		i.n.link(name, nil)
		return 0
	})
}

// Rmdir implements fs.NodeRmdirer.
func (i *inode) Rmdir(_ context.Context, name string) syscall.Errno {
	return i.do(OpName, func() syscall.Errno {
		n := i.n.names[name]
		switch {
		case n == nil:
			return syscall.ENOENT
		case len(n.names) > 0:
			return syscall.ENOTEMPTY
		}
		i.n.link(name, nil)
		return 0
	})
}

// Rename implements fs.NodeRenamer.
func (i *inode) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	const noReplace = 1
	return i.do(OpName, func() syscall.Errno {
		n, to := i.n.names[name], parent.(*inode).n
		switch {
		case n == nil:
			return syscall.ENOENT
		case flags&^noReplace != 0:
			return syscall.EINVAL
		case flags == noReplace && to.names[newName] != nil:
			return syscall.EEXIST
		}
		to.link(newName, n)
		if i.n != to || name != newName {
			i.n.link(name, nil)
		}
		return 0
	})
}

// Open implements fs.NodeOpener.
func (i *inode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, i.do(0, func() syscall.Errno { return 0 })
}

// Read implements fs.NodeReader.
func (i *inode) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (res fuse.ReadResult, errno syscall.Errno) {
	errno = i.do(0, func() syscall.Errno {
		n := 0
		if off < int64(len(i.n.data)) {
			n = copy(dest, i.n.data[off:])
		}
		res = fuse.ReadResultData(dest[:n])
		return 0
	})
	return res, errno
}

// Write implements fs.NodeWriter.
func (i *inode) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	errno := i.do(OpWrite, func() syscall.Errno {
		i.n.write(off, data)
		return 0
	})
	if errno != 0 {
		return 0, errno
	}
	return uint32(len(data)), 0
}

// Fsync implements fs.NodeFsyncer, of files and folders.
func (i *inode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	i.d.mu.Lock()
	defer i.d.mu.Unlock()
	if errno := i.d.enter(OpSync); errno != 0 {
		if !i.d.dead {
			i.n.forget()
		}
		return errno
	}
	i.n.sync()
	return 0
}

// Statfs implements fs.NodeStatfser: 64 GiB, nearly all free.
func (i *inode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks, out.Bfree, out.Bavail = 16<<20, 15<<20, 15<<20
	return 0
}
