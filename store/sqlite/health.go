package sqlite

import (
	"os"

	"acuse/store"
)

// Health is a snapshot; it waits for no write.
func (d *DB) Health() store.Health {
	h := store.Health{Engine: "sqlite", Schema: d.schema, Free: d.space.Now(), Queued: d.committer.Waiting()}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if st, err := os.Stat(d.path + suffix); err == nil {
			h.Bytes += st.Size()
			if suffix == "-wal" {
				h.Journal = st.Size()
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h.Commits, h.Writes, h.Longest = d.counts.commits, d.counts.writes, d.counts.longest
	h.Writable = d.broken == nil && h.Free >= d.space.MinFree
	switch {
	case d.broken != nil:
		h.Err = d.broken.Error()
	case !h.Writable:
		h.Err = "free space on the volume is under the floor"
	}
	return h
}
