package engine

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Space watches the volume of the data folder and holds the reserve: a file that is
// given up when the volume is full, so that leases, settles and purging go on.
type Space struct {
	MinFree int64  // the floor: below it nothing new is accepted
	Total   int64  // bytes of the volume; 0 is unknown
	File    string // the reserve

	dir  string
	size int64 // of the reserve

	mu      sync.Mutex
	free    int64
	checked time.Time // when free was measured; monotonic
	tried   time.Time // when the reserve was to be made last; monotonic
	held    bool
}

// NewSpace measures the volume of dir. minFree 0 is the smaller of 100 MiB and 5 % of the
// volume.
func NewSpace(dir string, minFree int64) *Space {
	s := &Space{MinFree: minFree, File: filepath.Join(dir, "acuse.reserve"), dir: dir}
	s.free, s.Total = Free(dir)
	s.checked = time.Now()
	if minFree == 0 {
		s.MinFree = min(100<<20, s.Total/20)
	}
	s.size = min(8<<20, s.Total/50)
	return s
}

// Free returns the bytes free for us and the bytes of the volume; total is 0 and free
// is plenty where the system does not tell.
func Free(dir string) (free, total int64) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 1 << 62, 0
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize)
}

// Now returns the free bytes: measured within the last second, less what was written
// since.
func (s *Space) Now() int64 { return max(0, s.look(time.Second)) }

func (s *Space) look(age time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.checked) > age {
		s.free, _ = Free(s.dir)
		s.checked = time.Now()
	}
	return s.free
}

// Used takes n written bytes off the free ones until the next measurement.
func (s *Space) Used(n int64) {
	s.mu.Lock()
	s.free -= n
	s.mu.Unlock()
}

// Low tells that free space is under the floor. The estimate errs on the side of caution,
// so it is measured again before it refuses anything.
func (s *Space) Low() bool {
	return s.look(time.Second) < s.MinFree && s.look(50*time.Millisecond) < s.MinFree
}

// Full remembers that a write failed for want of space: low until the next look.
func (s *Space) Full() {
	s.mu.Lock()
	s.free, s.checked = 0, time.Now()
	s.mu.Unlock()
}

// Reserve makes the reserve file when there is room for it above the floor. Its bytes
// are written, not only promised. Failing is no error: the volume is just too full.
func (s *Space) Reserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held || s.size == 0 {
		return
	}
	if st, err := os.Stat(s.File); err == nil && st.Size() == s.size {
		s.held = true
		return
	}
	free, _ := Free(s.dir)
	if free < s.MinFree+2*s.size {
		return
	}
	if err := fill(s.File, s.size); err != nil {
		_ = os.Remove(s.File)
		return
	}
	s.held = true
}

// GiveUp removes the reserve; false when there was none.
func (s *Space) GiveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.tried = false, time.Now()
	return os.Remove(s.File) == nil
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

// Restock makes the reserve again once there is room; it looks once a second at most.
func (s *Space) Restock() {
	s.mu.Lock()
	want := !s.held && s.size > 0 && time.Since(s.tried) > time.Second
	if want {
		s.tried = time.Now()
	}
	s.mu.Unlock()
	if want {
		s.Reserve()
	}
}

// Forget makes the next looks fresh ones.
func (s *Space) Forget() {
	s.mu.Lock()
	s.checked, s.tried = time.Time{}, time.Time{}
	s.mu.Unlock()
}
