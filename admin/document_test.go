package admin

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func document(t testing.TB) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTheDocumentDescribesExactlyTheCalls(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	described := map[string]string{}
	for path, ops := range document(t)["paths"].(map[string]any) {
		for method, op := range ops.(map[string]any) {
			scope, _ := op.(map[string]any)["x-scope"].(string)
			described[strings.ToUpper(method)+" "+path] = scope
		}
	}
	for _, rt := range w.admin.apiRoutes() {
		key := rt.method + " " + rt.path
		scope, ok := described[key]
		if !ok {
			t.Errorf("%s is not described", key)
		} else if scope != rt.scope {
			t.Errorf("%s: scope %q described, %q asked", key, scope, rt.scope)
		}
		delete(described, key)
	}
	for key := range described {
		t.Errorf("%s is described and not there", key)
	}
}

// fits holds a value against a schema of the document: types, required, no others.
func fits(doc map[string]any, schema, v any, at string) error {
	s := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		return fits(doc, doc["components"].(map[string]any)["schemas"].(map[string]any)[name], v, at+":"+name)
	}
	if err := ofType(s, v, at); err != nil || v == nil {
		return err
	}
	if list, ok := s["enum"].([]any); ok && !slices.Contains(list, v) {
		return fmt.Errorf("%s: %v is none of %v", at, v, list)
	}
	switch x := v.(type) {
	case []any:
		for i, e := range x {
			if err := fits(doc, s["items"], e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return fitsObject(doc, s, x, at)
	case string:
		if s["format"] == "date-time" && !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(x) {
			return fmt.Errorf("%s: %q is no instant", at, x)
		}
	}
	return nil
}

func fitsObject(doc, s, x map[string]any, at string) error {
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, k := range required {
		if _, ok := x[k.(string)]; !ok {
			return fmt.Errorf("%s lacks %s", at, k)
		}
	}
	for k, e := range x {
		sub, ok := props[k]
		if !ok {
			if sub, ok = s["additionalProperties"].(map[string]any); !ok {
				if props == nil {
					continue
				}
				return fmt.Errorf("%s has %s, not described", at, k)
			}
		}
		if err := fits(doc, sub, e, at+"."+k); err != nil {
			return err
		}
	}
	return nil
}

func ofType(s map[string]any, v any, at string) error {
	var types []any
	switch t := s["type"].(type) {
	case string:
		types = []any{t}
	case []any:
		types = t
	default:
		return nil
	}
	is := "null"
	switch x := v.(type) {
	case string:
		is = "string"
	case bool:
		is = "boolean"
	case float64:
		if is = "number"; x == math.Trunc(x) {
			is = "integer"
		}
	case []any:
		is = "array"
	case map[string]any:
		is = "object"
	}
	if !slices.Contains(types, any(is)) {
		return fmt.Errorf("%s is %s, not %v", at, is, types)
	}
	return nil
}

func TestLiveAnswersFitTheDocument(t *testing.T) {
	t.Parallel()
	w := seeded(t, 2)
	doc := document(t)
	d := func(name string) string { return "/api/v1" + w.path(name) }
	groups, err := w.db.DeadGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, route, body string
		code                      int
	}{
		{"GET", "/api/v1/deliveries?limit=500", "/api/v1/deliveries", "", 200},
		{"GET", d("dead"), "/api/v1/deliveries/{id}", "", 200},
		{"GET", d("quarantined"), "/api/v1/deliveries/{id}", "", 200},
		{"GET", d("two"), "/api/v1/deliveries/{id}", "", 200},
		{"GET", "/api/v1/deliveries/999999", "/api/v1/deliveries/{id}", "", 404},
		{"POST", d("retry") + "/resend", "/api/v1/deliveries/{id}/resend", `{"destination":"app","reason":"x"}`, 202},
		{"POST", d("retry") + "/resend", "/api/v1/deliveries/{id}/resend", "", 202},
		{"POST", d("leased") + "/resend", "/api/v1/deliveries/{id}/resend", "", 409},
		{"POST", d("paid") + "/resend", "/api/v1/deliveries/{id}/resend", `{"as_new":true,"reason":"lost it"}`, 202},
		{"POST", d("two") + "/cancel", "/api/v1/deliveries/{id}/cancel", "", 200},
		{"POST", d("two") + "/cancel", "/api/v1/deliveries/{id}/cancel", "", 409},
		{"POST", "/api/v1/deliveries/release", "/api/v1/deliveries/release", `{"source":"stripe","dry_run":true}`, 200},
		{"GET", "/api/v1/dead", "/api/v1/dead", "", 200},
		{"POST", "/api/v1/dead/" + groupID(groups[len(groups)-1]) + "/resend", "/api/v1/dead/{group}/resend", `{"limit":1}`, 202},
		{"POST", "/api/v1/dead/nothing/cancel", "/api/v1/dead/{group}/cancel", "", 404},
		{"GET", "/api/v1/sources", "/api/v1/sources", "", 200},
		{"GET", "/api/v1/destinations", "/api/v1/destinations", "", 200},
		{"POST", "/api/v1/destinations/app/probe", "/api/v1/destinations/{name}/probe", "", 409},
		{"POST", "/api/v1/destinations/app/pause", "/api/v1/destinations/{name}/pause", "", 200},
		{"POST", "/api/v1/destinations/app/probe", "/api/v1/destinations/{name}/probe", "", 409},
		{"POST", "/api/v1/destinations/app/resume", "/api/v1/destinations/{name}/resume", "", 200},
		{"POST", "/api/v1/destinations/nowhere/pause", "/api/v1/destinations/{name}/pause", "", 404},
		{"GET", "/api/v1/rejections", "/api/v1/rejections", "", 200},
		{"GET", "/api/v1/rejections/1", "/api/v1/rejections/{id}", "", 200},
		{"POST", "/api/v1/rejections/recheck", "/api/v1/rejections/recheck", `{"source":"stripe","secret":"case-SECRET-G","tolerance":"1h","deliver":true}`, 200},
		{"POST", "/api/v1/rejections/recheck", "/api/v1/rejections/recheck", `{"source":"nowhere"}`, 404},
		{"POST", "/api/v1/rejections/recheck", "/api/v1/rejections/recheck", `{}`, 400},
		{"POST", "/api/v1/rejections/recheck", "/api/v1/rejections/recheck", `{"source":"stripe","tolerance":"soon"}`, 400},
		{"POST", "/api/v1/rejections/recheck", "/api/v1/rejections/recheck", `{"source":"stripe","secret":"*"}`, 422},
		{"GET", "/api/v1/stats?since=2026-11-30T00:00:00Z", "/api/v1/stats", "", 200},
		{"GET", "/api/v1/status", "/api/v1/status", "", 200},
		{"POST", "/api/v1/backup", "/api/v1/backup", `{"path":` + strconv.Quote(t.TempDir()+"/copy.db") + `}`, 200},
		{"POST", "/api/v1/check", "/api/v1/check", `{"full":true}`, 200},
		{"POST", "/api/v1/erase", "/api/v1/erase", `{"resource":"nothing of ours","dry_run":true}`, 200},
		{"POST", "/api/v1/erase", "/api/v1/erase", `{"event":"a","resource":"b"}`, 400},
		{"POST", "/api/v1/setup-link", "/api/v1/setup-link", "", 200},
		{"POST", "/api/v1/tokens", "/api/v1/tokens", `{"name":"ci","scopes":["read","resend"]}`, 201},
		{"POST", "/api/v1/tokens", "/api/v1/tokens", `{"name":"ci","scopes":["effects","approve"]}`, 400},
		{"GET", "/api/v1/tokens", "/api/v1/tokens", "", 200},
		{"POST", "/api/v1/users", "/api/v1/users", `{"name":"eva","password":"long enough it is"}`, 201},
		{"POST", "/api/v1/users", "/api/v1/users", `{"name":"eva","password":"long enough it is"}`, 409},
		{"GET", "/api/v1/users", "/api/v1/users", "", 200},
		{"POST", "/api/v1/users/eva/password", "/api/v1/users/{name}/password", `{"password":"another long one"}`, 204},
		{"DELETE", "/api/v1/users/eva", "/api/v1/users/{name}", "", 409},
		{"GET", "/api/v1/openapi.json", "/api/v1/openapi.json", "", 200},
	} {
		r := w.call(t, c.method, c.path, adminToken, c.body)
		if r.Code != c.code {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, r.Code, c.code, r.Body)
			continue
		}
		if r.Code == http.StatusNoContent {
			continue
		}
		var v any
		if err := json.Unmarshal(r.Body.Bytes(), &v); err != nil {
			t.Errorf("%s %s: %v", c.method, c.path, err)
			continue
		}
		op := doc["paths"].(map[string]any)[c.route].(map[string]any)[strings.ToLower(c.method)].(map[string]any)["responses"].(map[string]any)
		resp, ok := op[strconv.Itoa(c.code)].(map[string]any)
		kind := "application/json"
		if !ok {
			resp, kind = op["default"].(map[string]any), "application/problem+json"
		}
		if got := r.Header().Get("Content-Type"); got != kind {
			t.Errorf("%s %s: Content-Type %s", c.method, c.path, got)
		}
		if err := fits(doc, resp["content"].(map[string]any)[kind].(map[string]any)["schema"], v, c.route); err != nil {
			t.Error(err)
		}
	}
}
