package admin

import (
	"fmt"
	"io/fs"
	"regexp"
)

var symbolID = regexp.MustCompile(`<symbol id="([a-z-]+)"`)

// loadIcons reads the names of the sprite's symbols, so that a template which names
// another one stops the program at start.
func loadIcons(files fs.FS) (map[string]bool, error) {
	b, err := fs.ReadFile(files, "static/icons.svg")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, m := range symbolID.FindAllSubmatch(b, -1) {
		names[string(m[1])] = true
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("static/icons.svg has no symbols")
	}
	return names, nil
}
