package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxFile bounds a file that a value names: keys and certificates are small.
const maxFile = 64 << 10

var variable = regexp.MustCompile(`\$?\$\{([^}]*)\}?`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand puts the environment into a text (${NAME}; $${ stands for ${) and, when
// the text as written begins with file:, reads that file less one line end.
// Errors name the variable or file, never a value.
func (r *reader) expand(text string) (string, error) {
	var wrong []string
	out := variable.ReplaceAllStringFunc(text, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		name := variable.FindStringSubmatch(m)[1]
		if !strings.HasSuffix(m, "}") || !variableName.MatchString(name) {
			wrong = append(wrong, "${ is not followed by a name and }; write $${ for the characters themselves")
			return ""
		}
		v, ok := r.env[name]
		switch {
		case !ok:
			wrong = append(wrong, "the environment has no "+name)
		case v == "":
			wrong = append(wrong, name+" is empty in the environment")
		}
		return v
	})
	if len(wrong) > 0 {
		return "", errors.New(strings.Join(wrong, "; "))
	}
	if name, ok := strings.CutPrefix(out, "file:"); ok && strings.HasPrefix(text, "file:") {
		return r.readValue(name)
	}
	return out, nil
}

func (r *reader) readValue(name string) (string, error) {
	if r.open == nil {
		return "", errors.New("files cannot be read here")
	}
	f, err := r.open(r.beside(name))
	if err != nil {
		return "", fmt.Errorf("file cannot be read: %w", bare(err))
	}
	defer func() { _ = f.Close() }() // was only read
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch s := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"); {
	case err != nil:
		return "", fmt.Errorf("file cannot be read: %w", bare(err))
	case len(b) > maxFile:
		return "", errors.New("file is larger than 64 KiB")
	case s == "":
		return "", errors.New("file is empty")
	default:
		return s, nil
	}
}

// beside makes a path of the file relative to the config file.
func (r *reader) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

// bare is the cause without the path: a value in the place of a path stays hidden.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func openFile(name string) (io.ReadCloser, error) { return os.Open(name) }
