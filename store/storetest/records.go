package storetest

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"acuse/store"
)

func rejection(source, reason, body string) store.Rejection {
	return store.Rejection{
		Source: source, Reason: reason, Detail: "skew=840s", Remote: "203.0.113.7", At: t0, Status: 401, Method: "POST", Target: "/in/" + source,
		Header: []byte(`{"A":["b"]}`), Body: []byte(body), Size: len(body),
	}
}

func (e *env) rejections(source string) []store.Rejection {
	e.Helper()
	list, err := e.s.RejectionList(e.Context(), source, 0, 10_000)
	e.ok(err)
	return list
}

var recordTests = []test{
	{"", "a refused request is kept once and counted after", func(e *env) {
		r := rejection("s", "signature_mismatch", "body\x00")
		e.ok(e.s.Reject(e.Context(), r))
		r.At, r.Detail = at(time.Minute), "skew=900s"
		e.ok(e.s.Reject(e.Context(), r))
		for _, other := range []store.Rejection{rejection("s", "signature_mismatch", "other"), rejection("s", "too_large", "body\x00"), rejection("t", "signature_mismatch", "body\x00")} {
			e.ok(e.s.Reject(e.Context(), other))
		}
		same(e, "rows", len(e.rejections("")), 4)
		list := e.rejections("s")
		same(e, "rows of the source", len(list), 3)
		got, err := e.s.RejectionByID(e.Context(), list[2].ID)
		e.ok(err)
		want := r
		want.ID, want.FirstAt, want.Count = list[2].ID, t0, 2
		if !reflect.DeepEqual(got, want) {
			e.Fatalf("got %+v\nwant %+v", got, want)
		}
		_, err = e.s.RejectionByID(e.Context(), 99)
		e.is(err, store.ErrNotFound)
		n, err := e.s.RejectionsSince(e.Context(), t0)
		e.ok(err)
		same(e, "since the beginning", n, 5)
		n, err = e.s.RejectionsSince(e.Context(), at(time.Minute))
		e.ok(err)
		same(e, "in the last minute", n, 1)
		page, err := e.s.RejectionList(e.Context(), "s", list[1].ID, 10)
		e.ok(err)
		same(e, "the page before", len(page), 1)
	}},
	{"", "a repeat that nobody diagnosed leaves the diagnosis of its row", func(e *env) {
		r := rejection("s", "signature_mismatch", "body")
		r.Detail = "cause=other_secret"
		e.ok(e.s.Reject(e.Context(), r))
		r.Detail, r.Undiagnosed, r.At = "header:X", true, at(time.Minute)
		e.ok(e.s.Reject(e.Context(), r))
		first := e.rejections("s")[0]
		same(e, "row", fmt.Sprint(first.Count, " ", first.Detail), "2 cause=other_secret")
		other := rejection("s", "too_large", "body")
		other.Detail, other.Undiagnosed = "header:X", true
		e.ok(e.s.Reject(e.Context(), other))
		same(e, "a new row", e.rejections("s")[0].Detail, "header:X")
	}},
	{"", "a rejection that was let in is taken out, and stays counted", func(e *env) {
		e.ok(e.s.Reject(e.Context(), rejection("s", "signature_mismatch", "one")))
		e.ok(e.s.Reject(e.Context(), rejection("s", "signature_mismatch", "two")))
		id := e.rejections("s")[1].ID
		e.ok(e.s.RemoveRejection(e.Context(), id))
		e.ok(e.s.RemoveRejection(e.Context(), id))
		e.reopen()
		_, err := e.s.RejectionByID(e.Context(), id)
		e.is(err, store.ErrNotFound)
		same(e, "rows", len(e.rejections("")), 1)
		n, err := e.s.RejectionsSince(e.Context(), t0)
		e.ok(err)
		same(e, "counted", n, 2)
	}},
	{"", "a body that was not read stays nil, an empty one empty in effect", func(e *env) {
		r := rejection("s", "too_large", "")
		r.Body, r.Header, r.Size = nil, nil, 2<<20
		e.ok(e.s.Reject(e.Context(), r))
		got, err := e.s.RejectionByID(e.Context(), e.rejections("")[0].ID)
		e.ok(err)
		same(e, "body", got.Body == nil, true)
		same(e, "size", got.Size, 2<<20)
	}},
	{"", "the ring is bounded in bytes: the greediest source gives, unsigned ones first", func(e *env) {
		body := bytes.Repeat([]byte("x"), 700<<10)
		for i := range 3 {
			r := rejection("quiet", "signature_mismatch", fmt.Sprint("small ", i))
			e.ok(e.s.Reject(e.Context(), r))
		}
		for i := range 40 {
			r := rejection("loud", "signature_mismatch", fmt.Sprint(i, string(body)))
			r.Signed, r.At = i < 5, at(time.Duration(i)*time.Second)
			e.ok(e.s.Reject(e.Context(), r))
		}
		same(e, "the quiet source keeps its own", len(e.rejections("quiet")), 3)
		loud, signed := e.rejections("loud"), 0
		for _, r := range loud {
			if r.Signed {
				signed++
			}
		}
		same(e, "signed ones stay", signed, 5)
		if n := len(loud); n < 15 || n > 24 {
			e.Fatalf("%d of 40 rows of 700 KiB are kept, want about 16 MiB of them", n)
		}
		same(e, "the newest is there", loud[0].At, at(39*time.Second))
		n, err := e.s.RejectionsSince(e.Context(), t0)
		e.ok(err)
		same(e, "all are counted", n, 43)
	}},
	{"", "rejections go after seven days", func(e *env) {
		e.ok(e.s.Reject(e.Context(), rejection("s", "signature_mismatch", "old")))
		r := rejection("s", "signature_mismatch", "new")
		r.At = at(7*24*time.Hour + time.Second)
		e.ok(e.s.Reject(e.Context(), r))
		same(e, "rows", len(e.rejections("")), 1)
	}},
	{"", "a notice is written by rule and subject, and leaves the list a day after its end", func(e *env) {
		n := store.Notice{Rule: "dead", Subject: "app", Since: t0, SentAt: at(time.Second), Count: 3, Text: "3 dead letters", Error: "smtp: refused"}
		e.ok(e.s.PutNotice(e.Context(), n))
		e.ok(e.s.PutNotice(e.Context(), store.Notice{Rule: "dead", Subject: "crm", Since: at(time.Minute)}))
		n.Count, n.Error = 4, ""
		e.ok(e.s.PutNotice(e.Context(), n))
		e.reopen()
		list, err := e.s.NoticeList(e.Context(), at(time.Hour))
		e.ok(err)
		same(e, "notices", fmt.Sprint(len(list), list[0]), fmt.Sprint(2, n))
		n.Ended, n.SentEnd = at(time.Hour), true
		e.ok(e.s.PutNotice(e.Context(), n))
		list, err = e.s.NoticeList(e.Context(), at(24*time.Hour))
		e.ok(err)
		same(e, "ended lately", list[0], n)
		list, err = e.s.NoticeList(e.Context(), at(25*time.Hour+time.Second))
		e.ok(err)
		same(e, "ended long ago", len(list), 1)
	}},
	{"", "people are kept by name", func(e *env) {
		u := store.User{Name: "ana", Role: "owner", Password: "$argon2id$…", Language: "es", CreatedAt: t0}
		e.ok(e.s.PutUser(e.Context(), u))
		e.ok(e.s.PutUser(e.Context(), store.User{Name: "bob", Role: "viewer", CreatedAt: t0}))
		u.Role = "operator"
		e.ok(e.s.PutUser(e.Context(), u))
		e.reopen()
		got, err := e.s.UserByName(e.Context(), "ana")
		e.ok(err)
		same(e, "user", got, u)
		list, err := e.s.Users(e.Context())
		e.ok(err)
		same(e, "users", len(list), 2)
		_, err = e.s.UserByName(e.Context(), "Ana")
		e.is(err, store.ErrNotFound)
		e.ok(e.s.RemoveUser(e.Context(), "ana"))
		e.is(e.s.RemoveUser(e.Context(), "ana"), store.ErrNotFound)
	}},
	{"", "tokens are found by their digest, and no two share one", func(e *env) {
		tok := store.Token{ID: "t1", Name: "ci", Agent: "bot", Hash: bytes.Repeat([]byte{7}, 32), Scopes: []string{"read", "pull:app"}, CreatedAt: t0, Expires: at(time.Hour)}
		e.ok(e.s.PutToken(e.Context(), tok))
		tok.LastUsed = at(time.Minute)
		e.ok(e.s.PutToken(e.Context(), tok))
		got, err := e.s.TokenByHash(e.Context(), tok.Hash)
		e.ok(err)
		if !reflect.DeepEqual(got, tok) {
			e.Fatalf("got %+v, want %+v", got, tok)
		}
		other := tok
		other.ID = "t2"
		e.is(e.s.PutToken(e.Context(), other), store.ErrRefused)
		_, err = e.s.TokenByHash(e.Context(), nil)
		e.is(err, store.ErrNotFound)
		list, err := e.s.Tokens(e.Context())
		e.ok(err)
		same(e, "tokens", len(list), 1)
		e.ok(e.s.RemoveToken(e.Context(), "t1"))
		_, err = e.s.TokenByHash(e.Context(), tok.Hash)
		e.is(err, store.ErrNotFound)
		e.is(e.s.RemoveToken(e.Context(), "t1"), store.ErrNotFound)
	}},
	{"", "sessions are kept, replaced, removed and run out", func(e *env) {
		s := store.Session{ID: "aa", User: "ana", Data: []byte{0, 1, 2}, Expires: at(time.Hour)}
		e.ok(e.s.PutSession(e.Context(), s))
		e.ok(e.s.PutSession(e.Context(), store.Session{ID: "bb", Data: []byte("x"), Expires: at(2 * time.Hour)}))
		s.Data = []byte("new")
		e.ok(e.s.PutSession(e.Context(), s))
		got, err := e.s.SessionByID(e.Context(), "aa")
		e.ok(err)
		if !reflect.DeepEqual(got, s) {
			e.Fatalf("got %+v, want %+v", got, s)
		}
		e.ok(e.s.ExpireSessions(e.Context(), at(time.Hour+time.Second)))
		_, err = e.s.SessionByID(e.Context(), "aa")
		e.is(err, store.ErrNotFound)
		e.ok(e.s.RemoveSession(e.Context(), "bb"))
		e.ok(e.s.RemoveSession(e.Context(), "bb"))
		_, err = e.s.SessionByID(e.Context(), "bb")
		e.is(err, store.ErrNotFound)
	}},
	{"", "a setting is empty until it is written, also with the empty text", func(e *env) {
		_, ok, err := e.s.Setting(e.Context(), "breaker:app")
		e.ok(err)
		same(e, "there", ok, false)
		for _, v := range []string{"open", "", "closed\x00"} {
			e.ok(e.s.PutSetting(e.Context(), "breaker:app", v))
			got, ok, err := e.s.Setting(e.Context(), "breaker:app")
			e.ok(err)
			same(e, "value", fmt.Sprint(got, ok), fmt.Sprint(v, true))
		}
	}},
}
