package alert

import (
	"strconv"
	"time"
)

// percents are how full the volume is when a person is told, each time anew.
var percents = []int{80, 90, 95}

// filled names the percents that the volume has reached. The last 100 MiB count as the
// highest, however large the volume is.
func filled(free, total int64) (reached []string) {
	if total <= 0 {
		return nil
	}
	used := 100 - int(free*100/total)
	if free < 100<<20 && total > 1<<30 {
		used = 100
	}
	for _, p := range percents {
		if used >= p {
			reached = append(reached, strconv.Itoa(p))
		}
	}
	return reached
}

// calmDisk keeps one filling volume from telling several times over: of what is reached
// at once only the highest is told, and only the end of the lowest.
func (a *Alerter) calmDisk(found map[key]finding, now time.Time) {
	higher := false
	for i := len(percents) - 1; i >= 0; i-- {
		m := a.matters[key{Disk, strconv.Itoa(percents[i])}]
		if m == nil {
			continue
		}
		_, there := found[key{Disk, m.Subject}]
		switch {
		case there && higher && now.Sub(m.SentAt) > reminder-time.Hour: // told by the higher one, reminders too
			m.SentAt, m.written = now, false
		case !there && !m.Ended.IsZero() && !m.SentEnd && i > 0:
			m.SentEnd, m.written = true, false
		}
		higher = higher || there
	}
}
