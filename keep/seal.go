package keep

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
)

// Recipients reads age recipients: "age1…", or hybrid ones, several apart by spaces or
// commas.
func Recipients(text string) (list []age.Recipient, err error) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\t' }) {
		parsed, err := age.ParseRecipients(strings.NewReader(word))
		if err != nil {
			return nil, fmt.Errorf("%q is no age recipient: one begins with age1", word)
		}
		list = append(list, parsed...)
	}
	return list, nil
}

// Identities reads a file of age identities (AGE-SECRET-KEY-1…).
func Identities(path string) ([]age.Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := age.ParseIdentities(f)
	if err != nil {
		return nil, fmt.Errorf("%s holds no age identities", path) // its lines are secrets
	}
	return list, nil
}

// ErrSealed reports a backup that is encrypted, read without a fitting identity.
var ErrSealed = errors.New("the backup is encrypted: give the age identity that fits it")

// ErrNoBackup reports a file that is no backup of acuse.
var ErrNoBackup = errors.New("not a backup of acuse")

// The engines by the files that hold their data.
var dataFiles = map[string]string{"sqlite": "acuse.db", "bbolt": "acuse.bolt"}

// DataFile is the name of an engine's file in the data folder.
func DataFile(engine string) string { return dataFiles[engine] }

// Engine tells which engine wrote a data file, by its first bytes.
func Engine(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return "sqlite"
	case len(head) >= 20 && bytes.Equal(head[16:20], []byte{0xed, 0xda, 0x0c, 0xed}):
		return "bbolt"
	}
	return ""
}

// Unseal opens a backup, decrypts it where it is encrypted, and tells its engine. The
// reader gives the data file; size is about how many bytes it will be.
func Unseal(f *os.File, identities []age.Identity) (r io.Reader, engine string, size int64, err error) {
	st, err := f.Stat()
	if err != nil {
		return nil, "", 0, err
	}
	in := bufio.NewReaderSize(f, 64<<10)
	if head, _ := in.Peek(22); string(head) == "age-encryption.org/v1\n" {
		if len(identities) == 0 {
			return nil, "", 0, ErrSealed
		}
		plain, err := age.Decrypt(in, identities...)
		var none *age.NoIdentityMatchError
		if errors.As(err, &none) {
			return nil, "", 0, ErrSealed
		}
		if err != nil {
			return nil, "", 0, err
		}
		in = bufio.NewReaderSize(plain, 64<<10)
	}
	head, err := in.Peek(32)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", 0, err
	}
	if engine = Engine(head); engine == "" {
		return nil, "", 0, ErrNoBackup
	}
	return in, engine, st.Size(), nil
}

// Copy copies until the end, ctx's end, or an error, and tells how far it is.
func Copy(ctx context.Context, to io.Writer, from io.Reader, progress func(done int64)) error {
	buf := make([]byte, 256<<10)
	var done int64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			if done += int64(n); progress != nil {
				progress(done)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
