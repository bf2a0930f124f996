package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrSetupLink reports a setup link that is wrong, used or too old.
var ErrSetupLink = errors.New("access: setup link is not valid")

// SetupLife is how long a setup link may be used.
const SetupLife = 30 * time.Minute

// settingSetup names the setting with the digest and the end of the newest link.
const settingSetup = "access.setup_link"

// NewSetupLink makes the token of a setup link and forgets the one before it. Only
// its digest is kept.
func (u *Users) NewSetupLink(ctx context.Context) (token string, expires time.Time, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	token = rand.Text()
	expires = u.now().Add(SetupLife).UTC().Truncate(time.Millisecond)
	kept := hex.EncodeToString(digest(token)) + " " + strconv.FormatInt(expires.UnixMilli(), 10)
	if err := u.accounts.PutSetting(ctx, settingSetup, kept); err != nil {
		return "", time.Time{}, fmt.Errorf("new setup link: %w", err)
	}
	return token, expires, nil
}

// RedeemSetup uses a setup link up: nil at most once a link. When the store fails
// to write that down, the link is not redeemed. ErrSetupLink.
func (u *Users) RedeemSetup(ctx context.Context, token string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept, ok, err := u.accounts.Setting(ctx, settingSetup)
	if err != nil {
		return fmt.Errorf("redeem setup link: %w", err)
	}
	if !ok || !u.fits(kept, token) {
		return ErrSetupLink
	}
	if err := u.accounts.PutSetting(ctx, settingSetup, ""); err != nil {
		return fmt.Errorf("redeem setup link: %w", err)
	}
	return nil
}

func (u *Users) fits(kept, token string) bool {
	sum, end, ok := strings.Cut(kept, " ")
	if !ok {
		return false
	}
	ms, err := strconv.ParseInt(end, 10, 64)
	if err != nil || !u.now().Before(time.UnixMilli(ms)) {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(sum), []byte(hex.EncodeToString(digest(token)))) == 1
}
