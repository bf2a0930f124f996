package bolt

import "acuse/store"

// Health is a snapshot; it waits for no write.
func (d *DB) Health() store.Health {
	h := store.Health{Engine: "bbolt", Schema: schema, Free: d.space.Now(), Queued: d.committer.Waiting()}
	if st, err := d.raw.Stat(); err == nil {
		h.Bytes = st.Size()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h.Commits, h.Writes, h.Longest = d.counts.commits, d.counts.writes, d.counts.longest
	full := d.roomInside()
	h.Writable = d.broken == nil && full == nil && h.Free >= d.space.MinFree
	switch {
	case d.broken != nil:
		h.Err = d.broken.Error()
	case full != nil:
		h.Err = full.Error()
	case !h.Writable:
		h.Err = "free space on the volume is under the floor"
	}
	return h
}
