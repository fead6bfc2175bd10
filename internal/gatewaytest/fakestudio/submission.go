package fakestudio

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxBody is the longest submission that is read.
const maxBody = 64 << 20

// waits tells whether an accepted work has not begun: it begins with the second
// poll.
func (s *Studio) waits(it *work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return it.polls <= 1
}

// readJSON reads a submission strictly.
func readJSON(r *http.Request, into any) ([]byte, error) {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		return nil, fmt.Errorf("content type %q", kind)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("more than %d bytes", maxBody)
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	return body, decoder.Decode(into)
}

func answerJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the connection may be gone
}

// webAddress tells whether s is an http(s) address.
func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// dataOf tells whether s is a data URI of a type that begins so.
func dataOf(s, kind string) bool {
	head, data, ok := strings.Cut(s, ";base64,")
	if !ok || !strings.HasPrefix(head, "data:"+kind) {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(data)
	return err == nil && data != ""
}
