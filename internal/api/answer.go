package api

import "net/http"

// answer is the writer of one request: it knows whether anything was written
// and with which status.
type answer struct {
	http.ResponseWriter
	status int // 0: nothing written yet
}

// WriteHeader notes the status of the answer; informational ones pass.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer began.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// FlushError sends what was written, and with it the header.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap gives http.ResponseController the connection's own writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// unwrapped returns the connection's own writer, which http.MaxBytesReader
// needs to close a connection with an unread rest.
func unwrapped(w http.ResponseWriter) http.ResponseWriter {
	if a, ok := w.(*answer); ok {
		return a.ResponseWriter
	}
	return w
}
