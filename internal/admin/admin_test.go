package admin

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/webhook"
	"tollgate/internal/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// providers has the only provider of the tests' lines.
var providers = map[string]catalog.Provider{
	"test": {Kinds: []catalog.Kind{"chat"}, Forms: []wire.Form{wire.FormChat}, DefaultBaseURL: "https://upstream.example/v1"},
}

const token = "operator-token-of-the-test"

// caller sends requests to the API of one node on one database.
type caller struct {
	t       *testing.T
	handler http.Handler
	keys    *account.Keys
	db      *store.DB
	log     *bytes.Buffer
}

func newCaller(t *testing.T, db *store.DB, edit ...func(*Options)) *caller {
	t.Helper()
	keys := account.NewKeys(account.KeysOptions{DB: db})
	t.Cleanup(keys.Close)
	log := &bytes.Buffer{}
	opts := Options{Token: httpapi.NewOperatorToken(token), PublicURL: "https://gate.example", DB: db, Keys: keys,
		Log:       slog.New(slog.NewTextHandler(&lockedBuffer{w: log}, nil)),
		Providers: providers,
		Webhooks:  webhook.New(webhook.Options{DB: db, Guard: egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})}
	for _, e := range edit {
		e(&opts)
	}
	return &caller{t: t, handler: New(opts), keys: keys, db: db, log: log}
}

// eachDB runs a test with a caller on a new database of each engine.
func eachDB(t *testing.T, test func(t *testing.T, c *caller)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, newCaller(t, db)) })
}

type lockedBuffer struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// reply is a response of the API.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// do sends a request. headers are pairs of name and value.
func (c *caller) do(method, path, body string, headers ...string) reply {
	c.t.Helper()
	r := httptest.NewRequest(method, Base+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return reply{t: c.t, status: w.Code, header: w.Header(), body: w.Body.String()}
}

// ok is do for a request with the status 200 and a JSON answer.
func (c *caller) ok(method, path, body string, headers ...string) reply {
	c.t.Helper()
	r := c.do(method, path, body, headers...)
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "application/json" {
		c.t.Fatalf("%s %s %s answered %d %s, want 200 with JSON", method, path, body, r.status, r.body)
	}
	return r
}

// members returns the members of the reply, a JSON object.
func (r reply) members() map[string]any {
	r.t.Helper()
	d := json.NewDecoder(strings.NewReader(r.body))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		r.t.Fatalf("the reply %s is no JSON object: %v", r.body, err)
	}
	return m
}

func (r reply) text(name string) string {
	r.t.Helper()
	s, ok := r.members()[name].(string)
	if !ok {
		r.t.Fatalf("%s has no text %q", r.body, name)
	}
	return s
}

// want checks that the reply has all members of a JSON object.
func (r reply) want(members string) {
	r.t.Helper()
	got, want := r.members(), reply{t: r.t, body: members}.members()
	for name, v := range want {
		g, ok := got[name]
		a, _ := json.Marshal(g)
		b, _ := json.Marshal(v)
		if !ok || !bytes.Equal(a, b) {
			r.t.Errorf("%s is %s, want %s, in %s", name, a, b, r.body)
		}
	}
}

// wantNames checks that the reply has exactly the named members.
func (r reply) wantNames(names ...string) {
	r.t.Helper()
	got := r.members()
	for _, name := range names {
		if _, ok := got[name]; !ok {
			r.t.Errorf("%s lacks %s", r.body, name)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		r.t.Errorf("%s has the unexpected members %v", r.body, got)
	}
}

// wantFault checks that the reply is the error with a code and param in the format of /v1.
func (r reply) wantFault(code fault.Code, param string) {
	r.t.Helper()
	var e struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil {
		r.t.Fatalf("the reply %d %s has no error: %v", r.status, r.body, err)
	}
	row, _ := fault.Lookup(code)
	got := ""
	if e.Error.Param != nil {
		got = *e.Error.Param
	}
	if e.Error.Code != string(code) || r.status != row.Status || e.Error.Type != row.Type || got != param || e.Error.Message == "" {
		r.t.Errorf("answered %d %s, want %d %s at %q", r.status, r.body, row.Status, code, param)
	}
}

// list returns the elements of a list and whether there are more.
func (r reply) list() (elements []map[string]any, more bool) {
	r.t.Helper()
	m := r.members()
	if names := []string{"object", "data", "has_more"}; m["next"] == nil {
		r.wantNames(names...)
	} else {
		r.wantNames(append(names, "next")...)
	}
	r.want(`{"object":"list"}`)
	for _, e := range m["data"].([]any) {
		elements = append(elements, e.(map[string]any))
	}
	return elements, m["has_more"].(bool)
}

// accepts reports whether a key's secret works on this node now.
func (c *caller) accepts(secret string) bool {
	c.t.Helper()
	_, err := c.keys.Authenticate(c.t.Context(), secret, netip.MustParseAddr("192.0.2.1"), false)
	if err != nil && fault.Of(err).Code != fault.InvalidAPIKey {
		c.t.Fatal(err)
	}
	return err == nil
}

func TestAuthenticationAndRoutes(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic " + token, token, "Bearer " + token + "x",
			"Bearer " + token[1:]} {
			r := c.do("GET", "/accounts", "", "Authorization", header)
			r.wantFault(fault.InvalidAPIKey, "")
			if r.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("Authorization %q: WWW-Authenticate is %q, want Bearer", header, r.header.Get("WWW-Authenticate"))
			}
			c.do("GET", "/nothing", "", "Authorization", header).wantFault(fault.InvalidAPIKey, "")
		}
		c.ok("GET", "/accounts", "", "Authorization", "bearer  "+token+" ")
		for _, path := range []string{"", "/", "/nothing", "/accounts/", "/accounts//keys", "/accounts/x/nothing", "/accounts/x/keys/y",
			"/codes/x/y", "/jobs/x/pause", "/webhook", "/accounts/x/webhook/pause", "/lines/main", "/lines/main/pause",
			"/catalog/revisions/1/x", "/{id}"} {
			if r := c.do("GET", path, ""); !strings.Contains(r.body, "/admin/docs") {
				t.Errorf("GET %s answered %s, want a message that names /admin/docs", path, r.body)
			} else {
				r.wantFault(fault.NotFound, "")
			}
		}
		for path, allow := range map[string]string{
			"/accounts": "GET, HEAD, POST", "/catalog": "GET, HEAD, PUT", "/keys/x": "DELETE, GET, HEAD, PATCH",
			"/accounts/x/credits": "POST", "/lines/x/drain": "POST", "/lines/x/resume": "POST", "/audit": "GET, HEAD",
			"/accounts/x": "GET, HEAD, PATCH",
		} {
			r := c.do("TRACE", path, "")
			r.wantFault(fault.MethodNotAllowed, "")
			if got := r.header.Get("Allow"); got != allow {
				t.Errorf("%s allows %q, want %q", path, got, allow)
			}
		}
		if r := c.do("HEAD", "/accounts", ""); r.status != http.StatusOK {
			t.Errorf("HEAD answered %d, want 200", r.status)
		}
		if r := c.ok("GET", "/accounts", ""); r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("Cache-Control is %q, want no-store", r.header.Get("Cache-Control"))
		}
	})
}

func TestWithoutTokenEverythingIs404(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		c := newCaller(t, db, func(o *Options) { o.Token = nil })
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer " + token} {
			c.do("GET", "/accounts", "", "Authorization", header).wantFault(fault.NotFound, "")
			c.do("POST", "/accounts", `{"name":"x"}`, "Authorization", header).wantFault(fault.NotFound, "")
		}
	})
}

func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		for _, id := range []string{"acct_none", "key_none", "%00", "%ff", strings.Repeat("x", 3000), "'%20OR%201=1"} {
			for path, body := range map[string]string{
				"GET /accounts/" + id: "", "PATCH /accounts/" + id: `{"name":"x"}`, "GET /accounts/" + id + "/users": "",
				"POST /accounts/" + id + "/users":   `{"email":"a@example.com","password":"12345678"}`,
				"PATCH /users/" + id:                `{"disabled":true}`,
				"DELETE /users/" + id:               "",
				"POST /users/" + id + "/link":       "",
				"GET /users/" + id:                  "",
				"POST /accounts/" + id + "/credits": `{"usd":1}`, "GET /accounts/" + id + "/entries": "",
				"POST /accounts/" + id + "/keys": `{}`, "GET /accounts/" + id + "/keys": "",
				"POST /lines/" + id + "/drain": "", "POST /lines/" + id + "/resume": `{}`,
				"GET /keys/" + id: "", "PATCH /keys/" + id: `{}`, "DELETE /keys/" + id: "", "GET /catalog/revisions/" + id: "",
			} {
				method, path, _ := strings.Cut(path, " ")
				c.do(method, path, body).wantFault(fault.NotFound, "")
			}
		}
		if c.log.Len() > 0 {
			t.Errorf("404 responses were logged: %s", c.log)
		}
	})
}

// TestUnavailableDatabase checks that the API answers 503 and logs the outage once, without the
// token.
func TestUnavailableDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := newCaller(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		r := c.do("POST", "/accounts", `{"name":"x"}`)
		r.wantFault(fault.ServiceUnavailable, "")
		if r.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q, want 1", r.header.Get("Retry-After"))
		}
		if log := c.log.String(); strings.Count(log, "\n") != 1 || strings.Contains(log, token) {
			t.Errorf("the log is %q, want one line without the token", log)
		}
	})
}
