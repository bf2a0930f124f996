package admin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

// assets are the files of static/, each under a name that holds its digest, so
// that a browser may keep it for ever.
type assets struct {
	byName map[string]asset  // "app.3f2a….css"
	hashed map[string]string // "app.css" -> "app.3f2a….css"
}

type asset struct {
	contentType string
	plain, gz   []byte
}

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

func loadAssets(files fs.FS) (*assets, error) {
	a := &assets{byName: map[string]asset{}, hashed: map[string]string{}}
	list, err := fs.ReadDir(files, "static")
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		ext := path.Ext(e.Name())
		if e.IsDir() || contentTypes[ext] == "" {
			continue
		}
		b, err := fs.ReadFile(files, "static/"+e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:5]) + ext
		a.hashed[e.Name()] = name
		a.byName[name] = asset{contentType: contentTypes[ext], plain: b, gz: squeeze(b)}
	}
	return a, nil
}

func (a *assets) name(file string) (string, error) {
	name, ok := a.hashed[file]
	if !ok {
		return "", fmt.Errorf("no static file %s", file)
	}
	return name, nil
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.byName[r.PathValue("name")]
	if !ok {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	send(w, r, http.StatusOK, f.plain, f.gz)
}

// send answers with gz when the browser takes it and it is there.
func send(w http.ResponseWriter, r *http.Request, status int, plain, gz []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	body := plain
	if gz != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = gz
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the browser left: nobody to tell
}

func squeeze(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is a valid one
	_, _ = z.Write(b)                                       // into memory
	_ = z.Close()
	return out.Bytes()
}

var squeezers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return z
}}

// squeezePage compresses a page at the speed of a Pi. Pages hold no secret that a
// stranger's input could be measured against: there is no token in them.
func squeezePage(b []byte) []byte {
	var out bytes.Buffer
	z := squeezers.Get().(*gzip.Writer)
	defer squeezers.Put(z)
	z.Reset(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}
