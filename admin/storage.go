package admin

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"acuse/store"
)

// Storage is what the archive takes and how long that will do.
type Storage struct {
	store.Usage
	Volume     int64         // bytes free on the volume
	Total      int64         // bytes of the volume; 0: not known
	Growth     int64         // bytes a day; 0: not known yet, or none
	CapOn      time.Time     // when the oldest go before their age; zero: not in sight
	FullOn     time.Time     // when the volume is full; zero: not in sight
	Age        time.Duration // what the retention keeps
	DeadAge    time.Duration
	Cap        int64
	Longest    time.Duration // longest transaction since the start
	LastBackup time.Time     // zero: never
	Every      time.Duration // between planned backups; 0: none are planned
	Late       bool          // the planned one was not made
	BackupDir  string        // where "back up now" puts it
	Network    string        // the network file system under the archive; empty: none
}

// storageView is the page.
type storageView struct {
	Storage
	Parts    []part // of the data file, largest first
	Facts    []fact
	CanAct   bool // make and check backups
	CanCheck bool
	Used     int64 // of the volume
	Percent  int64
	CapPart  int64 // percent of the cap that is used
}

// part is a table with a bar.
type part struct {
	Name        string
	Rows, Bytes int64
	Percent     int64 // of the largest
}

func percent(n, of int64) int64 {
	if of <= 0 {
		return 0
	}
	return min(100, n*100/of)
}

func (a *Admin) storage(w http.ResponseWriter, r *http.Request) error {
	if a.opt.Storage == nil {
		return errAbsent
	}
	l := a.localeOf(r)
	s, err := a.opt.Storage(r.Context())
	if err != nil {
		return err
	}
	v := storageView{Storage: s, CanAct: a.opt.BackupNow != nil, CanCheck: a.opt.VerifyBackup != nil, Used: s.Total - s.Volume,
		Percent: percent(s.Total-s.Volume, s.Total), CapPart: percent(s.Live, s.Cap)}
	most := int64(1)
	for _, t := range s.Tables {
		most = max(most, t.Bytes)
	}
	for _, t := range s.Tables {
		v.Parts = append(v.Parts, part{l.T("storage.table." + t.Name), t.Rows, t.Bytes, percent(t.Bytes, most)})
	}
	v.Facts = a.storageFacts(l, &s)
	return a.show(w, r, http.StatusOK, "storage", frame{Title: l.T("nav.storage"), Nav: "/settings", Nav2: "/settings/storage", Help: "help.storage", Body: v})
}

func (a *Admin) storageFacts(l *locale, s *Storage) []fact {
	now := a.opt.Now()
	facts := []fact{
		{l.T("storage.files"), l.T("storage.files_are", l.size(s.Bytes), l.size(s.Live), l.size(s.Free), l.size(s.Journal))},
		{l.T("storage.kept"), l.T("storage.kept_is", l.span(s.Age), l.size(s.Cap), l.span(s.DeadAge))},
	}
	if !s.Oldest.IsZero() {
		facts = append(facts, fact{l.T("storage.oldest"), l.full(s.Oldest)})
	}
	growth := l.T("storage.growth_unknown")
	if s.Growth > 0 {
		growth = l.T("storage.growth_is", l.size(s.Growth))
	}
	facts = append(facts, fact{l.T("storage.growth"), growth})
	if !s.CapOn.IsZero() {
		facts = append(facts, fact{l.T("storage.cap_on"), l.day(s.CapOn, true)})
	}
	if !s.FullOn.IsZero() {
		facts = append(facts, fact{l.T("storage.full_on"), l.day(s.FullOn, true)})
	}
	facts = append(facts, fact{l.T("storage.removable"), l.T("storage.removable_is", l.num(s.Removable), l.size(s.RemovableBytes))})
	if s.Longest > 0 {
		facts = append(facts, fact{l.T("storage.longest"), l.num(s.Longest.Milliseconds()) + " ms"})
	}
	backup := l.T("storage.no_backup")
	if !s.LastBackup.IsZero() {
		backup = l.T("storage.backup_at", l.full(s.LastBackup), l.ago(s.LastBackup, now))
	}
	switch {
	case s.Late:
		backup += " · " + l.T("storage.late")
	case s.Every > 0:
		backup += " · " + l.T("storage.planned", l.span(s.Every))
	}
	return append(facts, fact{l.T("storage.backup"), backup})
}

func (a *Admin) backupForm(w http.ResponseWriter, r *http.Request) error {
	l := a.localeOf(r)
	if a.opt.BackupNow == nil || a.opt.Storage == nil {
		return errAbsent
	}
	s, err := a.opt.Storage(r.Context())
	if err != nil {
		return err
	}
	return a.confirm(w, r, http.StatusOK, "/settings", confirmView{Title: l.T("storage.backup_title"), Text: l.T("storage.backup_text", s.BackupDir, l.size(s.Live)),
		Button: l.T("storage.backup_button"), Back: "/settings/storage"})
}

// backupNow answers when the copy is made: on a large archive that takes its time.
func (a *Admin) backupNow(w http.ResponseWriter, r *http.Request) error {
	if a.opt.BackupNow == nil {
		return errAbsent
	}
	ctx, l, v := context.WithoutCancel(r.Context()), a.localeOf(r), visitOf(r.Context())
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
	path, err := a.opt.BackupNow(ctx)
	if err != nil {
		a.opt.Log.Error("backup", "err", err)
		v.flash(ctx, "bad", l.T("storage.backup_failed", visible(err.Error(), false)))
	} else {
		a.note(ctx, store.AuditEntry{By: actor(r, v.grant), Act: "backup", Subject: path})
		v.flash(ctx, "ok", l.T("storage.backup_done", visible(path, false)))
	}
	a.redirect(w, r, "/settings/storage")
	return nil
}

func (a *Admin) verifyForm(w http.ResponseWriter, r *http.Request) error {
	l := a.localeOf(r)
	return a.confirm(w, r, http.StatusOK, "/settings", confirmView{Title: l.T("storage.verify_title"), Text: l.T("storage.verify_text"),
		Button: l.T("storage.verify_button"), Back: "/settings/storage"})
}

// ErrNoBackupYet reports that there is no planned backup to verify.
var ErrNoBackupYet = errors.New("there is no backup in the folder")

// ErrSealedBackup reports that the newest backup is encrypted: the server has no identity.
var ErrSealedBackup = errors.New("the newest backup is encrypted")

// verifyNow opens the newest backup as a restore would.
func (a *Admin) verifyNow(w http.ResponseWriter, r *http.Request) error {
	if a.opt.VerifyBackup == nil {
		return errAbsent
	}
	ctx, l, v := r.Context(), a.localeOf(r), visitOf(r.Context())
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
	path, problems, err := a.opt.VerifyBackup(ctx)
	name := visible(filepath.Base(path), false)
	switch {
	case errors.Is(err, ErrNoBackupYet):
		v.flash(ctx, "bad", l.T("storage.verify_none"))
	case errors.Is(err, ErrSealedBackup):
		v.flash(ctx, "bad", l.T("storage.verify_sealed", name))
	case err != nil:
		a.opt.Log.Error("verify", "file", path, "err", err)
		v.flash(ctx, "bad", l.T("storage.verify_bad", name, visible(err.Error(), false)))
	case len(problems) > 0:
		v.flash(ctx, "bad", l.T("storage.verify_bad", name, visible(strings.Join(problems, "; "), false)))
	default:
		v.flash(ctx, "ok", l.T("storage.verify_good", name))
	}
	a.redirect(w, r, "/settings/storage")
	return nil
}
