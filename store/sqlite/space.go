package sqlite

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const pageSize = 8192

// space watches the volume of the data folder and holds the reserve: a file that is
// given up when the volume is full, so that leases, settles and purging go on.
type space struct {
	dir, file string
	minFree   int64
	total     int64 // bytes of the volume; 0 is unknown
	size      int64 // of the reserve

	mu      sync.Mutex
	free    int64
	checked time.Time // when free was measured; monotonic
	tried   time.Time // when the reserve was to be made last; monotonic
	held    bool
}

func newSpace(dir string, minFree int64) *space {
	s := &space{dir: dir, file: filepath.Join(dir, "acuse.reserve"), minFree: minFree}
	s.free, s.total = statfs(dir)
	s.checked = time.Now()
	if minFree == 0 {
		s.minFree = min(100<<20, s.total/20)
	}
	s.size = min(8<<20, s.total/50)
	return s
}

// statfs returns the bytes free for us and the bytes of the volume; total is 0 and free
// is plenty where the system does not tell.
func statfs(dir string) (free, total int64) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 1 << 62, 0
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize)
}

// now returns the free bytes: measured within the last second, less what was written
// since.
func (s *space) now() int64 { return max(0, s.look(time.Second)) }

func (s *space) look(age time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.checked) > age {
		s.free, _ = statfs(s.dir)
		s.checked = time.Now()
	}
	return s.free
}

// used takes n written bytes off the free ones until the next measurement.
func (s *space) used(n int64) {
	s.mu.Lock()
	s.free -= n
	s.mu.Unlock()
}

// low tells that free space is under the floor. The estimate errs on the side of caution,
// so it is measured again before it refuses anything.
func (s *space) low() bool {
	return s.look(time.Second) < s.minFree && s.look(50*time.Millisecond) < s.minFree
}

// full remembers that a write failed for want of space: low until the next look.
func (s *space) full() {
	s.mu.Lock()
	s.free, s.checked = 0, time.Now()
	s.mu.Unlock()
}

// reserve makes the reserve file when there is room for it above the floor. Its bytes
// are written, not only promised. Failing is no error: the volume is just too full.
func (s *space) reserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held || s.size == 0 {
		return
	}
	if st, err := os.Stat(s.file); err == nil && st.Size() == s.size {
		s.held = true
		return
	}
	free, _ := statfs(s.dir)
	if free < s.minFree+2*s.size {
		return
	}
	if err := fill(s.file, s.size); err != nil {
		_ = os.Remove(s.file)
		return
	}
	s.held = true
}

// giveUp removes the reserve; false when there was none.
func (s *space) giveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.tried = false, time.Now()
	return os.Remove(s.file) == nil
}

func fill(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for n := int64(0); n < size; n += int64(len(block)) {
		if _, err := f.Write(block[:min(int64(len(block)), size-n)]); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}

// checkpointPages is how long the journal grows before a commit copies it back: 8 MB,
// less on a tiny volume, where the journal must not be what fills it.
func (s *space) checkpointPages() int64 {
	if s.total == 0 {
		return 1000
	}
	return max(16, min(1000, s.total/32/pageSize))
}

// restock makes the reserve again once there is room; it looks once a second at most.
func (s *space) restock() {
	s.mu.Lock()
	want := !s.held && s.size > 0 && time.Since(s.tried) > time.Second
	if want {
		s.tried = time.Now()
	}
	s.mu.Unlock()
	if want {
		s.reserve()
	}
}
