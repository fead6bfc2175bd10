package fakestudio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// maxBody is the maximum size of a submission.
const maxBody = 64 << 20

// object is a JSON object.
type object = map[string]any

// answerJSON writes an answer.
func answerJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client may have disconnected
}

// withKey returns an authorize function for a key in a header after prefix. refuse answers requests
// without a key.
func withKey(header, prefix string, refuse func(w http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		key, ok := strings.CutPrefix(r.Header.Get(header), prefix)
		if !ok || key == "" {
			refuse(w)
			return false
		}
		return true
	}
}

// refusal writes the answer to a submission that the protocol rejects.
type refusal func(w http.ResponseWriter, message string)

// readTask reads a JSON submission. check returns the error of the submission, or the empty string.
// If ok is false, readTask has recorded and rejected the submission.
func readTask[T any](s *Studio, w http.ResponseWriter, r *http.Request, check func(*T) string, refuse refusal) (
	in T, body []byte, ok bool,
) {
	body, err := readJSON(r, &in)
	message := fmt.Sprint(err)
	if err == nil {
		message = check(&in)
	}
	return in, body, s.passes(w, r, body, message, refuse)
}

// passes reports whether message is empty. Otherwise it records and rejects the submission.
func (s *Studio) passes(w http.ResponseWriter, r *http.Request, body []byte, message string, refuse refusal) bool {
	if message == "" {
		return true
	}
	s.record(r, body)
	refuse(w, message)
	return false
}

// readJSON reads a JSON body. Unknown fields are an error.
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
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return body, decoder.Decode(into)
}

// upload is a file in a form.
type upload struct {
	name, kind string
	data       []byte
}

// readForm reads a multipart form.
func readForm(r *http.Request) (body []byte, fields map[string]string, files map[string][]upload, err error) {
	if body, err = io.ReadAll(io.LimitReader(r.Body, maxBody)); err != nil {
		return body, nil, nil, err
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return body, nil, nil, fmt.Errorf("content type %q", r.Header.Get("Content-Type"))
	}
	fields, files = map[string]string{}, map[string][]upload{}
	reader := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return body, fields, files, nil
		}
		if err != nil {
			return body, nil, nil, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return body, nil, nil, err
		}
		if part.FileName() == "" {
			fields[part.FormName()] = string(data)
			continue
		}
		files[part.FormName()] = append(files[part.FormName()], upload{part.FileName(), part.Header.Get("Content-Type"), data})
	}
}

// polling describes the answers of a protocol to polls: JSON objects with a status.
type polling struct {
	id                             string // member with the ticket
	status                         string // member with the status
	waiting, running, failed, done string // values of the status
	members                        object // members of every answer
	// missing answers the poll of an unknown task.
	missing func(w http.ResponseWriter)
	// failure adds Behaviour.Failure to the answer. If nil, Failure is a JSON object, and its members
	// are added to the answer.
	failure func(answer object, failed string)
	// result adds the results to the answer.
	result func(answer object, t *task)
	// wrap returns the complete answer for an object. If nil, the object is the answer.
	wrap func(answer object) any
}

// answerPoll answers a poll.
func (s *Studio) answerPoll(w http.ResponseWriter, ticket string, p polling) {
	at, t := s.poll(w, ticket)
	answer := object{p.id: ticket}
	maps.Copy(answer, p.members)
	switch at {
	case answered:
		return
	case unknown:
		p.missing(w)
		return
	case running:
		answer[p.status] = p.running
		if s.waits(t) {
			answer[p.status] = p.waiting
		}
	case failed:
		answer[p.status] = p.failed
		if p.failure != nil {
			p.failure(answer, t.Failure)
		} else {
			_ = json.Unmarshal([]byte(t.Failure), &answer) // a Failure that is not an object adds nothing
		}
	case done:
		answer[p.status] = p.done
		p.result(answer, t)
	}
	if p.wrap == nil {
		answerJSON(w, http.StatusOK, answer)
		return
	}
	answerJSON(w, http.StatusOK, p.wrap(answer))
}

// statusOrError is polling.failure for protocols with an error object. failed is the error object, or
// an object with another status.
func statusOrError(answer object, failed string) {
	var other struct{ Status string }
	if _ = json.Unmarshal([]byte(failed), &other); other.Status != "" {
		answer["status"] = other.Status
	} else {
		answer["error"] = json.RawMessage(failed)
	}
}

// isWhole reports whether a decoded JSON value is a whole number.
func isWhole(v any) bool {
	n, ok := v.(float64)
	return ok && n == float64(int64(n))
}

// isReadable reports whether a provider could read v as a file: an http(s) address, or a data URI
// of at most limit bytes.
func isReadable(v any, limit int) bool {
	text, _ := v.(string)
	data := dataURI(text, "")
	return isURL(text) || len(data) > 0 && len(data) <= limit
}

// isURL reports whether s is an http(s) address.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// dataURI returns the bytes of a data URI with a type that begins with kind, or nil.
func dataURI(s, kind string) []byte {
	head, base, ok := strings.Cut(s, ";base64,")
	if !ok || !strings.HasPrefix(head, "data:"+kind) || !strings.Contains(head, "/") {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(base)
	if err != nil {
		return nil
	}
	return data
}

// isPicture reports whether s is an http(s) address or a data URI of a picture.
func isPicture(s string) bool { return isURL(s) || len(dataURI(s, "image/")) > 0 }

// isBase64Picture reports whether s is an http(s) address or base64 without a data URI.
func isBase64Picture(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil || isURL(s)
}
