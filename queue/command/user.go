package command

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
)

// searchPath is the PATH of commands where the destination sets none.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// owner is the user that a command runs as.
type owner struct {
	as         As
	name, home string
}

// account reads a user; "" is acuse's own, who need not have a name: a container's
// often has none.
func account(name string) (owner, error) {
	if name == "" {
		own := owner{as: As{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, home: "/"}
		if u, err := user.LookupId(strconv.Itoa(os.Geteuid())); err == nil {
			own.name, own.home = u.Username, u.HomeDir
		}
		return own, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if _, number := strconv.ParseUint(name, 10, 32); number == nil {
			u, err = user.LookupId(name)
		}
	}
	if err != nil {
		return owner{}, fmt.Errorf("user: this machine has no user %q", name)
	}
	ids, err := u.GroupIds()
	if err != nil {
		return owner{}, fmt.Errorf("user: the groups of %q cannot be read", name)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	out := owner{as: As{UID: uint32(uid), GID: uint32(gid)}, name: u.Username, home: u.HomeDir}
	for _, id := range ids {
		n, err3 := strconv.ParseUint(id, 10, 32)
		err = errors.Join(err, err3)
		out.as.Groups = append(out.as.Groups, uint32(n))
	}
	if err := errors.Join(err, err2); err != nil {
		return owner{}, fmt.Errorf("user: the numbers of %q cannot be read", name)
	}
	return out, nil
}

// environ is the whole environment of a command but for its delivery: nothing of
// acuse's own goes in.
func (o owner) environ(more map[string]string) []string {
	env := map[string]string{"PATH": searchPath, "HOME": o.home, "LANG": "C.UTF-8"}
	if o.name != "" {
		env["USER"], env["LOGNAME"] = o.name, o.name
	}
	maps.Copy(env, more)
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}
