package malformed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"tollgate/internal/contract/contracttest"
	"tollgate/internal/fault"
)

// allowed5xx are the documented 5xx answers to invalid requests: the status and the code, or under
// /native the status and the type.
var allowed5xx = []string{
	"503 model_maintenance", "503 api_error", // for a model under maintenance
	"501 invalid_request", "501 invalid_request_error", // a Transfer-Encoding other than chunked
	"505 invalid_request", "505 invalid_request_error", // another version of HTTP
}

// unreadable are the statuses, besides 400, of answers to requests that are not valid HTTP/1.1
// (docs/interface.md). The code of these answers is invalid_request.
var unreadable = []int{
	http.StatusExpectationFailed, http.StatusRequestHeaderFieldsTooLarge, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported,
}

// rejections are the codes that the gateway forwards from the providers of this test.
var rejections = []string{"invalid_value"}

// check returns an error if an answer does not conform to the documents.
func check(q *request, a *reply) error {
	parsed, whole, _ := parse(q.sent())
	switch {
	case a.nothing && whole:
		return fmt.Errorf("a complete request got no answer")
	case a.nothing:
		return nil
	case a.cut && whole:
		return fmt.Errorf("the answer is incomplete")
	case a.cut:
		return nil
	}
	id := a.header.Get("X-Request-Id")
	if !strings.HasPrefix(id, "req_") || a.header.Get("Request-Id") != id {
		return fmt.Errorf("the ids are %q and %q", id, a.header.Get("Request-Id"))
	}
	switch {
	case a.status >= 400 && q.method == http.MethodHead, parsed != nil && isConsole(parsed.URL.Path): // the answers are pages
		return check5xx(a.status, "")
	case a.status >= 400 && (parsed != nil && isNative(parsed.URL.Path) ||
		parsed == nil && bytes.HasPrefix(a.body, []byte(`{"type":"error"`))):
		return checkNative(a)
	case a.status >= 400 && (parsed != nil && fault.IsGoogle(parsed.URL.Path) ||
		parsed == nil && bytes.HasPrefix(a.body, []byte(`{"error":{"code":`))):
		return checkGoogle(a)
	case a.status >= 400:
		return checkError(a)
	}
	return checkGood(q, a)
}

// checkContract checks an answer against the OpenAPI documents, if the request can be parsed.
func (g *gateway) checkContract(q *request, a *reply) error {
	if _, whole, _ := parse(q.sent()); !whole || a.nothing {
		return nil
	}
	parsed, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(q.sent())))
	if err != nil {
		return nil
	}
	sent, err := io.ReadAll(parsed.Body)
	if err != nil {
		return nil
	}
	return g.contract.Check(contracttest.Answer{Method: parsed.Method, Path: parsed.URL.Path, Sent: sent, Status: a.status, Header: a.header,
		Body: a.body, Cut: a.cut})
}

func isConsole(path string) bool { return path == "/console" || strings.HasPrefix(path, "/console/") }

func isNative(path string) bool { return path == "/native" || strings.HasPrefix(path, "/native/") }

// check5xx returns an error if a 5xx status is not documented.
func check5xx(status int, code string) error {
	if status >= 500 && !slices.Contains(allowed5xx, fmt.Sprintf("%d %s", status, code)) {
		return fmt.Errorf("undocumented %d %s", status, code)
	}
	return nil
}

// checkError checks the error object of /v1, and whether status, type and code belong together.
func checkError(a *reply) error {
	var body struct {
		Error *struct {
			Message *string `json:"message"`
			Type    *string `json:"type"`
			Code    *string `json:"code"`
			Param   any     `json:"param"`
		} `json:"error"`
	}
	if err := strict(a, &body); err != nil {
		return err
	}
	e := body.Error
	if e == nil || e.Message == nil || *e.Message == "" || e.Type == nil || e.Code == nil || !bytes.Contains(a.body,
		[]byte(`"param":`)) {
		return fmt.Errorf("no error object")
	}
	if _, text := e.Param.(string); e.Param != nil && !text {
		return fmt.Errorf("param is %v", e.Param)
	}
	row, known := fault.Lookup(fault.Code(*e.Code))
	switch {
	case row.Code == fault.InvalidRequest && row.Type == *e.Type && slices.Contains(unreadable, a.status):
	case known && (row.Status != a.status || row.Type != *e.Type):
		return fmt.Errorf("%s is %d %s in the table", row.Code, row.Status, row.Type)
	case !known && !slices.Contains(rejections, *e.Code):
		return fmt.Errorf("the code %q is not in the table", *e.Code)
	}
	return check5xx(a.status, *e.Code)
}

// checkGoogle checks the error object of the Gemini form, and whether status and code belong together.
func checkGoogle(a *reply) error {
	var body struct {
		Error *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Status  string `json:"status"`
			Details []struct {
				Type            string            `json:"@type"`
				Reason          string            `json:"reason"`
				Domain          string            `json:"domain"`
				Metadata        map[string]string `json:"metadata"`
				FieldViolations []any             `json:"fieldViolations"`
				RetryDelay      string            `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	if err := strict(a, &body); err != nil {
		return err
	}
	e := body.Error
	if e == nil || e.Code != a.status || e.Message == "" || e.Status == "" || len(e.Details) == 0 || e.Details[0].Metadata["code"] == "" {
		return fmt.Errorf("no error object of Google's")
	}
	code := e.Details[0].Metadata["code"]
	row, known := fault.Lookup(fault.Code(code))
	switch {
	case row.Code == fault.InvalidRequest && slices.Contains(unreadable, a.status):
	case known && row.Status != a.status:
		return fmt.Errorf("%s is %d in the table", row.Code, row.Status)
	case !known && !slices.Contains(rejections, code):
		return fmt.Errorf("the code %q is not in the table", code)
	}
	return check5xx(a.status, code)
}

// checkNative checks the error object of /native, and whether status and type belong together.
func checkNative(a *reply) error {
	var body struct {
		Type  string `json:"type"`
		Error *struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := strict(a, &body); err != nil {
		return err
	}
	if body.Type != "error" || body.Error == nil || body.Error.Message == "" {
		return fmt.Errorf("no error object")
	}
	if slices.Contains(unreadable, a.status) && body.Error.Type == "invalid_request_error" {
		return check5xx(a.status, body.Error.Type)
	}
	if !slices.ContainsFunc(fault.Table(), func(row fault.TableRow) bool {
		status := row.Status
		if row.Code == fault.ModelNotFound {
			status = http.StatusNotFound // interface.md, Endpoints, rule 2
		}
		return (status == a.status || row.Status == a.status) && row.Native == body.Error.Type
	}) {
		return fmt.Errorf("%d %s is not in the table", a.status, body.Error.Type)
	}
	return check5xx(a.status, body.Error.Type)
}

// strict decodes a JSON answer.
func strict(a *reply, into any) error {
	if kind := a.header.Get("Content-Type"); kind != "application/json" {
		return fmt.Errorf("the content type is %q", kind)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return nil
}

// checkGood checks that JSON is valid, and that a stream has an end.
func checkGood(q *request, a *reply) error {
	kind := a.header.Get("Content-Type")
	switch {
	case q.method == http.MethodHead || len(a.body) == 0:
		return nil
	case kind == "application/json" && !json.Valid(a.body):
		return fmt.Errorf("the body is not JSON")
	case strings.HasPrefix(kind, "text/event-stream") && !hasEnd(a.body):
		return fmt.Errorf("the stream has no end event")
	}
	return nil
}

func hasEnd(stream []byte) bool {
	return slices.ContainsFunc([]string{"data: [DONE]", "event: message_stop", "event: response.completed",
		"event: response.incomplete", "event: response.failed",
		`data: {"error"`, "event: error", `"type":"speech.audio.done"`}, func(end string) bool { return bytes.Contains(stream, []byte(end)) })
}
