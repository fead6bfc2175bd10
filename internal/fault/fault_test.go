package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestEveryCodeHasARow checks that each constant in table.go has a row, except ClientClosed.
func TestEveryCodeHasARow(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		code, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		codes++
		if _, known := Lookup(Code(code)); !known && Code(code) != ClientClosed {
			t.Errorf("the code %s has no row in the table", code)
		}
		return true
	})
	if codes != len(Table())+1 {
		t.Errorf("%d codes and %d rows, want one code more than rows", codes, len(Table()))
	}
}

// TestStatusesAndTypes checks interface.md's table of statuses: each status has exactly one type on
// /v1 and a known type on /native.
func TestStatusesAndTypes(t *testing.T) {
	t.Parallel()
	v1 := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 402: "insufficient_quota", 403: "permission_error",
		404: "not_found_error", 405: "invalid_request_error", 413: "invalid_request_error", 429: "rate_limit_error",
		502: "upstream_error", 503: "service_unavailable",
	}
	native := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
		404: "not_found_error", 405: "invalid_request_error", 413: "invalid_request_error", 429: "rate_limit_error",
		502: "api_error", 503: "overloaded_error",
	}
	for _, row := range Table() {
		if v1[row.Status] != row.Type {
			t.Errorf("%s: status %d has type %q, want %q", row.Code, row.Status, row.Type, v1[row.Status])
		}
		want := native[row.Status]
		switch row.Code {
		case ModelMaintenance:
			want = "api_error"
		case ModelNotFound: // /native answers it with 404
			want = "not_found_error"
		}
		if row.Native != want {
			t.Errorf("%s: /native type %q, want %q", row.Code, row.Native, want)
		}
	}
}

// TestWrite checks the status, headers and body of errors.
func TestWrite(t *testing.T) {
	t.Parallel()
	busy := New(RateLimitExceeded, "All lines are <busy>.")
	busy.RetryAfter, busy.Fields = 1500*time.Millisecond, map[string]any{"attempts": []int{}}
	final := New(InsufficientQuota, "Top up.")
	final.NoRetry = true
	for _, tt := range []struct {
		err    *Error
		status int
		body   string
		header map[string]string
	}{
		{At(InvalidRole, "messages[2].role", "No."), 400,
			`{"error":{"message":"No.","type":"invalid_request_error","code":"invalid_role","param":"messages[2].role"}}`, nil},
		{busy, 429, `{"attempts":[],"error":{"message":"All lines are <busy>.","type":"rate_limit_error","code":"rate_limit_exceeded",` +
			`"param":null}}`,
			map[string]string{"Retry-After": "2"}},
		{final, 402, `{"error":{"message":"Top up.","type":"insufficient_quota","code":"insufficient_quota","param":null}}`,
			map[string]string{"X-Should-Retry": "false"}},
		{&Error{Code: "context_length_exceeded", Template: "Too long.", Param: "messages", Rejection: &Rejection{Status: 400}}, 400,
			`{"error":{"message":"Too long.","type":"invalid_request_error","code":"context_length_exceeded","param":"messages"}}`, nil},
		{&Error{Code: "bad_schema", Template: "Schema.", Rejection: &Rejection{Status: 422, Type: "vendor_error"}}, 422,
			`{"error":{"message":"Schema.","type":"vendor_error","code":"bad_schema","param":null}}`, nil},
		{&Error{Code: "never_heard_of", Template: "?"}, 503,
			`{"error":{"message":"?","type":"service_unavailable","code":"never_heard_of","param":null}}`, nil},
	} {
		w := httptest.NewRecorder()
		tt.err.Write(w)
		if w.Code != tt.status || strings.TrimSpace(w.Body.String()) != tt.body {
			t.Errorf("%s: %d %s\nwant %d %s", tt.err.Code, w.Code, w.Body, tt.status, tt.body)
		}
		if got := w.Header().Get("Content-Length"); got != fmt.Sprint(w.Body.Len()) {
			t.Errorf("%s: Content-Length %s, want %d", tt.err.Code, got, w.Body.Len())
		}
		for _, name := range []string{"Retry-After", "X-Should-Retry"} {
			if got := w.Header().Get(name); got != tt.header[name] {
				t.Errorf("%s: %s: %q, want %q", tt.err.Code, name, got, tt.header[name])
			}
		}
		if w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: content type %q, want application/json", tt.err.Code, w.Header().Get("Content-Type"))
		}
	}
}

// TestMessageNamesParam checks that a message follows a later change of Param, and that a
// provider's text never changes.
func TestMessageNamesParam(t *testing.T) {
	t.Parallel()
	e := At(InvalidRequest, "messages[0].100%d", "`{param}` must be at most %d, not %s.", 5, "{x}")
	if got := e.Message(); got != "`messages[0].100%d` must be at most 5, not {x}." {
		t.Error(got)
	}
	e.Param = "input"
	if got := e.Message(); got != "`input` must be at most 5, not {x}." {
		t.Error(got)
	}
	for _, body := range []string{string(e.Body()), string(e.NativeBody()), e.Error()} {
		if !strings.Contains(body, "`input` must be at most 5") {
			t.Error(body)
		}
	}
	rejected := &Error{Code: "x", Template: "Use {param}.", Param: "y", Rejection: &Rejection{Status: 400}}
	if got := rejected.Message(); got != "Use {param}." {
		t.Error(got)
	}
}

// TestInvalidExtraField checks that a body omits extra fields that cannot be encoded.
func TestInvalidExtraField(t *testing.T) {
	t.Parallel()
	e := New(UpstreamBusy, "Busy.")
	e.Fields = map[string]any{"attempts": func() {}}
	if !json.Valid(e.Body()) || !strings.Contains(string(e.Body()), `"upstream_busy"`) {
		t.Errorf("the body is %s, want only the error object", e.Body())
	}
}

// TestOf checks that Of finds a wrapped error and hides the cause of any other error.
func TestOf(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk full, password hunter2")
	if e := Of(fmt.Errorf("open: %w", New(NotFound, "Gone."))); e.Code != NotFound {
		t.Errorf("Of(wrapped error) = %v, want %s", e, NotFound)
	}
	e := Of(cause)
	if e.Status() != http.StatusServiceUnavailable || !errors.Is(e, cause) {
		t.Errorf("Of(%v) = %v, want status 503 with the cause", cause, e)
	}
	if strings.Contains(string(e.Body()), "hunter2") {
		t.Error("the body contains the cause")
	}
	if Of(nil) != nil {
		t.Error("Of(nil) is not nil")
	}
}

// TestFailedJobs checks the HTTP status and the type of each code of failed jobs, for a client that
// waited for the job.
func TestFailedJobs(t *testing.T) {
	t.Parallel()
	for _, row := range JobTable() {
		e := New(row.Code, "no")
		want := map[string]int{"invalid_request_error": 400, "upstream_error": 502}[row.Type]
		if e.Status() != want || e.Type() != row.Type {
			t.Errorf("%s: %d %s, want %d %s", row.Code, e.Status(), e.Type(), want, row.Type)
		}
	}
}
