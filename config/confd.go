package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
)

// AddSecret writes one more secret of a source to DATA/conf.d/<source>.yaml, which is
// only its owner's to read. The file is replaced as a whole or not at all. undo puts
// back what was there; call it when the configuration does not load with it.
func AddSecret(dataDir, source, secret string) (undo func() error, err error) {
	switch {
	case strings.HasPrefix(secret, "file:"):
		return nil, errors.New("the secret begins with file:, which would name a file")
	case strings.TrimSpace(secret) == "":
		return nil, errors.New("the secret is empty")
	}
	dir := filepath.Join(dataDir, "conf.d")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("conf.d: %w", err)
	}
	name := filepath.Join(dir, source+".yaml")
	old, err := os.ReadFile(name)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("conf.d: %w", err)
	}
	text, err := withSecret(old, source, strings.ReplaceAll(secret, "${", "$${"))
	if err != nil {
		return nil, fmt.Errorf("conf.d: %s: %w", filepath.Base(name), err)
	}
	if err := replaceFile(name, text); err != nil {
		return nil, fmt.Errorf("conf.d: %w", err)
	}
	return func() error {
		if there {
			return replaceFile(name, old)
		}
		return os.Remove(name)
	}, nil
}

// withSecret adds to the more_secrets of a source and leaves the rest as it is.
func withSecret(old []byte, source, secret string) ([]byte, error) {
	var file yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(old, &file, yaml.UseOrderedMap()); err != nil {
		return nil, errors.New("is not YAML as acuse writes it")
	}
	sources, _ := value(file, "sources").(yaml.MapSlice)
	entry, _ := value(sources, source).(yaml.MapSlice)
	list, _ := value(entry, "more_secrets").([]any)
	file = with(file, "sources", with(sources, source, with(entry, "more_secrets", append(list, secret))))
	return yaml.MarshalWithOptions(file, yaml.Indent(2), yaml.IndentSequence(true))
}

func value(m yaml.MapSlice, key string) any {
	for _, item := range m {
		if item.Key == key {
			return item.Value
		}
	}
	return nil
}

func with(m yaml.MapSlice, key string, v any) yaml.MapSlice {
	for i := range m {
		if m[i].Key == key {
			m[i].Value = v
			return m
		}
	}
	return append(m, yaml.MapItem{Key: key, Value: v})
}

// replaceFile writes a file beside the old one and renames it over it, both on disk
// before it returns: after a crash there is the old one or the new one.
func replaceFile(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Snippet is what the owner writes where the folder of the data cannot be written.
func Snippet(source, secret string) string {
	text, err := withSecret(nil, source, strings.ReplaceAll(secret, "${", "$${"))
	if err != nil {
		return ""
	}
	return string(text)
}
