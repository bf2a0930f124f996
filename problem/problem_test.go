package problem

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWriteAnswersAProblemDocument(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Write(w, http.StatusConflict, "lease-lost", "another worker holds the job")
	if w.Code != http.StatusConflict {
		t.Errorf("status %d", w.Code)
	}
	for name, want := range map[string]string{
		"Content-Type":           "application/problem+json",
		"X-Content-Type-Options": "nosniff",
		"Cache-Control":          "no-store",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	want := `{"type":"urn:acuse:problem:lease-lost","title":"Lease lost","status":409,"detail":"another worker holds the job"}` + "\n"
	if got := w.Body.String(); got != want {
		t.Errorf("body\n got %s\nwant %s", got, want)
	}
}

func TestWithErrorNamesTheSlugAndSaysSomething(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, detail, message string
	}{
		{"the detail is the message", "the body differs", "the body differs"},
		{"without a detail it is the title", "", "In progress"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := New(409, "in-progress", c.detail).WithError().Error
			want := ErrorBody{Type: "acuse_error", Code: "in-progress", Message: c.message}
			if *got != want {
				t.Errorf("got %+v, want %+v", *got, want)
			}
		})
	}
}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	t.Run("a value is written with status and headers", func(t *testing.T) {
		t.Parallel()
		w := httptest.NewRecorder()
		WriteJSON(w, http.StatusAccepted, map[string]int{"jobs": 3})
		if w.Code != http.StatusAccepted || w.Body.String() != "{\"jobs\":3}\n" {
			t.Errorf("got %d %q", w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", w.Header())
		}
	})
	t.Run("a value without a JSON form is a 500 problem and says nothing of the value", func(t *testing.T) {
		t.Parallel()
		w := httptest.NewRecorder()
		WriteJSON(w, http.StatusOK, func() {})
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 500 || p.Status != 500 {
			t.Errorf("got %d %q (%v)", w.Code, w.Body, err)
		}
		if w.Header().Get("Content-Type") != ContentType {
			t.Errorf("content type %q", w.Header().Get("Content-Type"))
		}
	})
}
