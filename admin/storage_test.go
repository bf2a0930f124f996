package admin

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestTheStoragePageTellsWhatFillsItAndWhenItIsFull(t *testing.T) {
	t.Parallel()
	w := seeded(t, 40)
	c := w.owner(t)
	page := strings.ReplaceAll(c.get("/settings/storage").Body.String(), "\u00a0", " ")
	for _, want := range []string{"46 GB of 58 GB used, 12 GB free", "31 MB a day", "At this rate the oldest go early from", "2027", "68 ms", "every 24 h",
		"Bodies and headers", "Back up now", "Verify the newest", `<meter id="volume"`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for form, done := range map[string]string{
		"/settings/storage/backup": "Backed up to /var/backups/acuse-20261130T140500Z.db.",
		"/settings/storage/verify": "acuse-20261130T140500Z.db is whole and can be restored.",
	} {
		if r := c.get(form); r.Code != 200 {
			t.Errorf("%s: %d", form, r.Code)
		}
		if r := c.post(form, nil); r.Code != 303 {
			t.Errorf("%s: %d", form, r.Code)
		}
		if page := c.get("/settings/storage").Body.String(); !strings.Contains(page, done) {
			t.Errorf("%s: not told %q", form, done)
		}
	}
	log, err := w.db.AuditLog(t.Context(), 0, 1)
	if err != nil || log[0].Act != "backup" {
		t.Error(log, err)
	}
}

func TestAVerifyTellsWhyABackupCannotBeReliedOn(t *testing.T) {
	t.Parallel()
	w := seeded(t, 2)
	c := w.owner(t)
	for _, e := range []struct {
		problems []string
		err      error
		want     string
	}{
		{nil, ErrNoBackupYet, "There is no backup in the folder yet."},
		{nil, ErrSealedBackup, "x.db is encrypted"},
		{nil, errors.New("disk on fire"), "x.db cannot be relied on: disk on fire"},
		{[]string{"page 7 is never used"}, nil, "x.db cannot be relied on: page 7 is never used"},
	} {
		w.admin.opt.VerifyBackup = func(context.Context) (string, []string, error) { return "/b/x.db", e.problems, e.err }
		c.post("/settings/storage/verify", nil)
		if page := c.get("/settings/storage").Body.String(); !strings.Contains(page, e.want) {
			t.Errorf("not told %q", e.want)
		}
	}
	w.admin.opt.BackupNow = func(context.Context) (string, error) { return "", errors.New("no space left") }
	c.post("/settings/storage/backup", nil)
	if page := c.get("/settings/storage").Body.String(); !strings.Contains(page, "No backup was made: no space left") {
		t.Error("a backup that failed is not told")
	}
}

func TestAViewerSeesTheStorageAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := seeded(t, 2)
	w.owner(t)
	c := w.person(t, "eva", "viewer")
	if page := c.get("/settings/storage"); page.Code != 200 || strings.Contains(page.Body.String(), "Back up now") {
		t.Error(page.Code)
	}
	for _, path := range []string{"/settings/storage/backup", "/settings/storage/verify"} {
		if r := c.post(path, nil); r.Code != 403 {
			t.Errorf("%s: %d", path, r.Code)
		}
	}
}
