package main

import (
	"embed"
	"io/fs"
)

//go:embed admin/templates admin/static
var embedded embed.FS

// adminFiles holds templates/ and static/ of the dashboard.
func adminFiles() fs.FS {
	sub, err := fs.Sub(embedded, "admin")
	if err != nil {
		panic(err) // the path above is a constant
	}
	return sub
}
