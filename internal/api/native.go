package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"tollgate/internal/fault"
)

// isNative says whether a path lies below /native, where errors have the shape
// of that family.
func isNative(path string) bool {
	return path == "/native" || strings.HasPrefix(path, "/native/")
}

// writeNative answers with the /native error shape (interface.md, Error object
// of /native endpoints). There is never a Retry-After here.
func writeNative(w http.ResponseWriter, f *fault.Error) {
	kind := "api_error"
	if row, ok := fault.Lookup(f.Code); ok {
		kind = row.Native
	}
	type object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	body, _ := json.Marshal(struct { // strings only: cannot fail
		Type  string `json:"type"`
		Error object `json:"error"`
	}{"error", object{kind, f.Message}})
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if f.NoRetry {
		h.Set("x-should-retry", "false")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(f.Status())
	_, _ = w.Write(append(body, '\n')) // the client may be gone; there is nobody else to tell
}
