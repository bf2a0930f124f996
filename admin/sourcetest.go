package admin

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"acuse/store"
)

// testWait is how long the answer waits for the end of a test, so that a page without
// a script shows it too; testLife is how long one may go on.
const (
	testWait = 3 * time.Second
	testLife = 2 * time.Minute
)

// testRun is a test event that a person sent from the page of a source.
type testRun struct {
	Source, Type string
	Deliver      bool
	Steps        []TestStep
	Done         bool
	Failed       error // why it could not be sent or followed
}

// testRuns holds the latest tests, for the pages that show them.
type testRuns struct {
	mu    sync.Mutex
	order []string
	byID  map[string]*testRun
}

const maxRuns = 32

func (t *testRuns) add(r *testRun) (id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = map[string]*testRun{}
	}
	id = rand.Text()[:12]
	t.byID[id] = r
	t.order = append(t.order, id)
	if len(t.order) > maxRuns {
		delete(t.byID, t.order[0])
		t.order = t.order[1:]
	}
	return id
}

// get is a copy of the test as it stands; nil when it is not known.
func (t *testRuns) get(source, id string) *testRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.byID[id]
	if r == nil || r.Source != source {
		return nil
	}
	c := *r
	c.Steps = slices.Clone(r.Steps)
	return &c
}

func (t *testRuns) change(r *testRun, f func(*testRun)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(r)
}

// sourceTest sends a test event and leads to the page that shows its steps.
func (a *Admin) sourceTest(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	if a.opt.Test == nil {
		return errAbsent
	}
	name := r.PathValue("name")
	if !slices.ContainsFunc(a.opt.Sources(), func(s Source) bool { return s.Name == name }) {
		return store.ErrNotFound
	}
	run := &testRun{Source: name, Type: r.PostForm.Get("type"), Deliver: r.PostForm.Get("deliver") == "1"}
	id := a.tests.add(run)
	// A person who leaves the page does not stop the test.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), testLife)
	ended := make(chan struct{})
	go func() {
		defer cancel()
		defer close(ended)
		err := a.opt.Test(ctx, TestRequest{Source: name, Type: run.Type, Deliver: run.Deliver}, func(s TestStep) {
			a.tests.change(run, func(run *testRun) { run.Steps = append(run.Steps, s) })
		})
		a.noteTest(name, err)
		a.tests.change(run, func(run *testRun) {
			run.Done = true
			run.Failed = err
		})
	}()
	select {
	case <-ended:
	case <-time.After(testWait):
	case <-r.Context().Done():
	}
	a.redirect(w, r, "/sources/"+url.PathEscape(name)+"?test="+id+"#test")
	return nil
}
