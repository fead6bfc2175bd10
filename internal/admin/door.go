package admin

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
)

// retryAfter is what a 503 asks for: the database may be back in a moment
// (ARCHITECTURE.md, Errors).
const retryAfter = time.Second

// call is one request on its way through.
type call struct {
	w  http.ResponseWriter
	r  *http.Request
	id string // the path's {id}; empty where it has none
}

// ServeHTTP lets the operator in, finds the route, and writes its answer or
// its error.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	out, err := s.receive(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	answer(w, out)
}

func (s *server) receive(w http.ResponseWriter, r *http.Request) (any, error) {
	path := strings.TrimPrefix(r.URL.Path, Base)
	if s.Token == "" {
		return nil, noPath(r)
	}
	if !s.knows(r.Header) {
		s.WrongToken(w, r)
		w.Header().Set("WWW-Authenticate", "Bearer")
		return nil, fault.New(fault.InvalidAPIKey,
			"The operator API needs the operator's token: send `Authorization: Bearer <admin_token>` with the value of the setting admin_token.")
	}
	methods, id := s.tree.find(path)
	if methods == nil {
		return nil, noPath(r)
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	route, ok := methods[method]
	if !ok {
		w.Header().Set("Allow", allowed(methods))
		return nil, fault.New(fault.MethodNotAllowed, "This endpoint does not accept %s. It accepts %s.", shown(r.Method), allowed(methods))
	}
	if !plain(id) {
		return nil, fault.New(fault.NotFound, "The path holds an id that cannot exist. Check it.")
	}
	return route.handle(&call{w: w, r: r, id: id})
}

// knows tells whether a request carries the operator's token, in a time that
// says nothing about where two tokens differ.
func (s *server) knows(h http.Header) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// refuse writes an error, and logs what only the operator of the machine can
// repair.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	f := fault.Of(err)
	if f.Status() >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.Log.Error("operator API: request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if errors.Is(err, store.ErrUncertain) || errors.Is(err, ledger.ErrUnknown) {
		f.Message = "The database did not confirm the change, so it may have been made. Repeat the request with the same Idempotency-Key if it had one, or look before you repeat it."
	}
	if f.Code == fault.ServiceUnavailable && f.RetryAfter == 0 {
		f.RetryAfter = retryAfter
	}
	f.Write(w)
}

// text is an answer that is no JSON value of ours: a document.
type text struct {
	contentType string
	body        []byte
}

// answer writes a success.
func answer(w http.ResponseWriter, out any) {
	doc, ok := out.(text)
	if !ok {
		doc = text{"application/json", encode(out)}
	}
	w.Header().Set("Content-Type", doc.contentType)
	_, _ = w.Write(doc.body) // the client may be gone; there is nobody else to tell
}

// encode writes an answer's JSON as people read it.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("admin: an answer that is no JSON: " + err.Error()) // a mistake in this package's types
	}
	return b.Bytes()
}

func noPath(r *http.Request) error {
	return fault.New(fault.NotFound, "There is no endpoint at %s.", shown(r.URL.Path))
}

// plain tells whether a text from a URL or header can be part of anything that
// is stored: UTF-8 without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// shown shortens what a stranger sent to what fits in a message.
func shown(s string) string {
	const most = 100
	s = strings.ToValidUTF8(s, "�")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
