package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	bbolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"acuse/store"
	"acuse/store/engine"
)

// touch makes the file, for its owner alone, and sees that its name survives power loss.
func (d *DB) touch() (*os.File, error) {
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := engine.SyncNames(d.dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// reopen opens the file, after closing it if need be. It waits for its readers.
func (d *DB) reopen() error {
	if old := d.file.Load(); old != nil {
		_ = old.Close() // whatever state it is in; what matters is the new one
	}
	o := d.options()
	file, err := openFile(d.path, o)
	if err != nil && o.InitialMmapSize > 0 { // the process may have less room to address
		o.InitialMmapSize = 0
		file, err = openFile(d.path, o)
	}
	if errors.Is(err, berrors.ErrTimeout) {
		err = &store.Locked{Dir: d.dir} // a program that is no acuse has the file open
	}
	if err != nil {
		return err
	}
	file.AllocSize = growBytes
	if err := migrate(file); err != nil {
		return errors.Join(err, file.Close())
	}
	d.file.Store(file)
	return nil
}

// options of bbolt: a commit syncs the data, then the page that makes it valid.
func (d *DB) options() *bbolt.Options {
	o := &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, PageSize: pageSize, MaxSize: int(d.cap)}
	if strconv.IntSize == 64 {
		o.InitialMmapSize = int(min(mapBytes, 1<<(strconv.IntSize-2)))
	}
	o.NoSync = noSync
	o.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		if name == d.path {
			d.handle = f
		}
		return f, err
	}
	return o
}

// openFile is bbolt's Open, which panics on some damage.
func openFile(path string, o *bbolt.Options) (file *bbolt.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	return bbolt.Open(path, 0o600, o)
}

// schema is the version of the data file.
const schema = 2

// The keys of the bucket "meta".
var (
	keyApplication = []byte("application")
	keySchema      = []byte("schema")
)

const application = "acuse"

// migrate brings the file to the newest version in one transaction.
func migrate(file *bbolt.DB) error {
	version, err := versionOf(file)
	if err != nil {
		return err
	}
	switch {
	case version > schema:
		return fmt.Errorf("%w: its version is %d, this acuse knows %d", store.ErrNewerSchema, version, schema)
	case version == schema:
		return nil
	}
	return file.Update(func(t *bbolt.Tx) error {
		for _, name := range tableNames {
			if _, err := t.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		meta := t.Bucket([]byte(tableNames[tMeta]))
		return errors.Join(meta.Put(keyApplication, []byte(application)), meta.Put(keySchema, binary.BigEndian.AppendUint64(nil, schema)))
	})
}

// versionOf reads the version, 0 of an empty file, and refuses a file that another
// program made.
func versionOf(file *bbolt.DB) (version uint64, err error) {
	err = file.View(func(t *bbolt.Tx) error {
		first, _ := t.Cursor().First()
		if first == nil {
			return nil
		}
		meta := t.Bucket([]byte(tableNames[tMeta]))
		if meta == nil || string(meta.Get(keyApplication)) != application || len(meta.Get(keySchema)) != 8 {
			return errors.New("not a data file of acuse")
		}
		version = binary.BigEndian.Uint64(meta.Get(keySchema))
		return nil
	})
	return version, err
}
