package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"acuse/store"
)

// cost is what one password takes: OWASP's smaller recommendation for argon2id,
// fit for a Raspberry Pi.
var cost = params{memory: 19 * 1024, passes: 2, lanes: 1}

// params are argon2id's, memory in KiB.
type params struct {
	memory, passes uint32
	lanes          uint8
}

func (p params) key(password string, salt []byte) []byte {
	return argon2.IDKey([]byte(password), salt, p.passes, p.memory, p.lanes, 32)
}

// hashPassword returns argon2id in PHC form, with a salt of its own.
func hashPassword(password string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails: see crypto/rand
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, cost.memory, cost.passes, cost.lanes,
		b64.EncodeToString(salt), b64.EncodeToString(cost.key(password, salt)))
}

// verifyPassword compares in constant time. A hash that is empty or cannot be read
// costs the same and never matches.
func verifyPassword(phc, password string) bool {
	p, salt, want, ok := parsePHC(phc)
	if !ok {
		p, salt, want = cost, make([]byte, 16), nil
	}
	if len(password) > maxPassword {
		password, ok = "", false
	}
	return subtle.ConstantTimeCompare(p.key(password, salt), want) == 1 && ok
}

// parsePHC reads hashPassword's form. Costs beyond four times ours are refused, so
// that a doctored row cannot exhaust the machine.
func parsePHC(s string) (p params, salt, key []byte, ok bool) {
	part := strings.Split(s, "$")
	if len(part) != 6 || part[0] != "" || part[1] != "argon2id" || part[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, nil, nil, false
	}
	if n, err := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes); n != 3 || err != nil {
		return p, nil, nil, false
	}
	if p.lanes < 1 || p.lanes > 4 || p.passes < 1 || p.passes > 4*cost.passes || p.memory < 8 || p.memory > 4*cost.memory {
		return p, nil, nil, false
	}
	salt, err := base64.RawStdEncoding.DecodeString(part[4])
	if err != nil || len(salt) < 8 {
		return p, nil, nil, false
	}
	key, err = base64.RawStdEncoding.DecodeString(part[5])
	return p, salt, key, err == nil && len(key) == 32
}

// Stamp changes when the person's password or role does. A session keeps the stamp
// of its login and ends when it is no longer the person's.
func Stamp(u store.User) string {
	sum := sha256.Sum256([]byte(u.Name + "\x00" + u.Role + "\x00" + u.Password))
	return hex.EncodeToString(sum[:16])
}
