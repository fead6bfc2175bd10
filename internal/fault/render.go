package fault

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Status returns the HTTP status of e: the provider's for a rejection, else that of the tables, else
// 503.
func (e *Error) Status() int {
	if e.Rejection != nil {
		return e.Rejection.Status
	}
	if row, ok := Lookup(e.Code); ok {
		return row.Status
	}
	if row := LookupJob(e.Code); row.Code == e.Code {
		return row.Status()
	}
	return http.StatusServiceUnavailable
}

// Type returns error.type of the /v1 shape.
func (e *Error) Type() string {
	if e.Rejection != nil {
		if e.Rejection.Type != "" {
			return e.Rejection.Type
		}
		return invalidRequestType
	}
	if row, ok := Lookup(e.Code); ok {
		return row.Type
	}
	if row := LookupJob(e.Code); row.Code == e.Code {
		return row.Type
	}
	return "service_unavailable"
}

// body is the error object of the /v1 shape (interface.md, Error object). The first four members are
// always present.
type body struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Code    string  `json:"code"`
	Param   *string `json:"param"`
	Status  string  `json:"status,omitempty"`
}

// Object returns the members of the /v1 error object as JSON, without the surrounding `error` key,
// for a stream's error event and a failed job.
func (e *Error) Object() []byte {
	b := body{Message: e.Message(), Type: e.Type(), Code: string(e.Code)}
	if e.Param != "" {
		b.Param = &e.Param
	}
	if e.Rejection != nil {
		b.Status = e.Rejection.StatusName
	}
	out, _ := encode(b) // strings only: cannot fail
	return out
}

// encode writes JSON without escaping `<` and `&`, so that people can read it.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// Body returns the whole /v1 body: the error object and the extra top-level fields.
func (e *Error) Body() []byte {
	members := make(map[string]any, len(e.Fields)+1)
	for k, v := range e.Fields {
		members[k] = v
	}
	members["error"] = json.RawMessage(e.Object())
	out, err := encode(members)
	if err != nil { // an extra field cannot be encoded: omit all extra fields
		out, _ = encode(map[string]any{"error": json.RawMessage(e.Object())})
	}
	return out
}

// Write answers a /v1 or operator request with e: status, headers and body. `Retry-After` and
// `x-should-retry` appear only if e sets them.
func (e *Error) Write(w http.ResponseWriter) {
	e.setRetryAfter(w.Header())
	e.send(w, e.Body())
}

func (e *Error) setRetryAfter(h http.Header) {
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(WholeSeconds(e.RetryAfter)))
	}
}

// send writes the status, the headers and a body.
func (e *Error) send(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if e.NoRetry {
		h.Set("x-should-retry", "false")
	}
	out := append(body, '\n')
	h.Set("Content-Length", strconv.Itoa(len(out)))
	w.WriteHeader(e.Status())
	_, _ = w.Write(out) // the client may have disconnected
}

// WholeSeconds rounds d up to whole seconds, at least 1.
func WholeSeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}
