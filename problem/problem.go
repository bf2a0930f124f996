// Package problem writes answers to machines: problem documents after RFC 9457 and
// plain JSON. Every answer says nosniff and no-store.
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// ContentType is the media type of a problem document.
const ContentType = "application/problem+json"

// urn stands before the slug in a document's type. A URN, because nothing needs to
// be reachable for a client to tell two problems apart.
const urn = "urn:acuse:problem:"

// Problem is a problem document. Its text is read by strangers: it never holds a
// payload, a secret, a signature or a cause inside the process.
type Problem struct {
	Type   string     `json:"type"`  // "urn:acuse:problem:lease-lost"
	Title  string     `json:"title"` // the same for every problem of the type: "Lease lost"
	Status int        `json:"status"`
	Detail string     `json:"detail,omitempty"` // what is to be said about this one
	Error  *ErrorBody `json:"error,omitempty"`
}

// ErrorBody is for client libraries that take an error status without an "error"
// member for a success.
type ErrorBody struct {
	Type    string `json:"type"` // always "acuse_error"
	Code    string `json:"code"` // the slug
	Message string `json:"message"`
}

// New makes a document. slug is lower case with hyphens; the title is made of it.
func New(status int, slug, detail string) Problem {
	return Problem{Type: urn + slug, Title: title(slug), Status: status, Detail: detail}
}

// WithError adds the member that client libraries look for.
func (p Problem) WithError() Problem {
	message := p.Detail
	if message == "" {
		message = p.Title
	}
	p.Error = &ErrorBody{Type: "acuse_error", Code: strings.TrimPrefix(p.Type, urn), Message: message}
	return p
}

// Write answers with the document.
func (p Problem) Write(w http.ResponseWriter) { write(w, p.Status, ContentType, p) }

// Write answers with a document made of its parts.
func Write(w http.ResponseWriter, status int, slug, detail string) {
	New(status, slug, detail).Write(w)
}

// WriteJSON answers with v as JSON. A v that has no JSON form is a bug of ours and
// answers 500.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	write(w, status, "application/json", v)
}

func write(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, contentType = http.StatusInternalServerError, ContentType
		body, _ = json.Marshal(New(status, "internal", "the answer could not be written"))
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)+1)) // whole also where the connection ends early
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client left: nobody to tell
}

// title turns "lease-lost" into "Lease lost".
func title(slug string) string {
	if slug == "" {
		return ""
	}
	words := strings.ReplaceAll(slug, "-", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}
