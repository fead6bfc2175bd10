package admin

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
)

const (
	// retryAfter is the Retry-After of a 503 (interface.md, Errors).
	retryAfter = time.Second
	// callTimeout bounds a call after its client has disconnected.
	callTimeout = 2 * time.Minute
)

// call is one request with its context.
type call struct {
	*httpapi.Exchange
	ctx context.Context // ends when the client disconnects only if Options.Attached is set
	id  string          // the path's {id}; empty if the path has no {id}
}

// authenticate checks the operator's token. Without a token in the settings it allows every request,
// because then every path is a 404.
func (s *server) authenticate(x *httpapi.Exchange) error {
	x.Header().Set("Cache-Control", "no-store")
	if !s.Token.IsSet() || s.Token.Is(httpapi.Bearer(x.Request.Header)) {
		return nil
	}
	if x.Request.Header.Get("Authorization") != "" { // a request without a token is not a guess
		s.WrongTokens.Slow(x, x.Request, httpapi.ClientAddress(x.Request, s.TrustedProxies))
	}
	return fault.New(fault.InvalidAPIKey,
		"The operator API needs the operator's token: send `Authorization: Bearer <admin_token>` with the value of the setting admin_token.")
}

// handler returns the HTTP handler of a route.
func (s *server) handler(handle func(*call) (any, error)) func(*httpapi.Exchange) error {
	return func(x *httpapi.Exchange) error {
		c := &call{Exchange: x, ctx: x.Request.Context(), id: x.PathID()}
		if !isPlain(c.id) {
			return fault.New(fault.NotFound, "The id in the path has control characters or is not UTF-8. Check the id.")
		}
		if !s.Attached {
			ctx, cancel := x.DetachedContext(callTimeout)
			defer cancel()
			c.ctx = ctx
		}
		out, err := handle(c)
		if err != nil {
			return operatorError(err)
		}
		answer(x, out)
		return nil
	}
}

// operatorError returns the error for the operator. It explains an unknown outcome of a commit and
// sets the Retry-After of a 503.
func operatorError(err error) error {
	f := fault.Of(err)
	if errors.Is(err, store.ErrUncertain) || errors.Is(err, ledger.ErrUnknown) {
		f = fault.New(fault.ServiceUnavailable, "The database did not confirm the change, so it may have been made. "+
			"Repeat the request with the same Idempotency-Key if it had one, or look before you repeat it.").WithCause(err)
	}
	if f.Code == fault.ServiceUnavailable && f.RetryAfter == 0 {
		f.RetryAfter = retryAfter
	}
	return f
}

// text is an answer with a content type, such as a catalog.
type text struct {
	contentType string
	body        []byte
}

// rows is a CSV answer, sent in parts. next returns the next part and reports whether there are more
// parts.
type rows struct {
	columns []string
	next    func() (cells [][]string, more bool, err error)
}

func (r rows) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", csvType)
	out := csv.NewWriter(w)
	_ = out.Write(r.columns) // WriteAll below returns the error again
	for more := true; more; {
		var cells [][]string
		var err error
		if cells, more, err = r.next(); err != nil {
			panic(http.ErrAbortHandler) // an incomplete table must not look complete
		}
		if err := out.WriteAll(cells); err != nil {
			return // the client has disconnected
		}
	}
}

const csvType = "text/csv; charset=utf-8"

// answer writes a successful answer.
func answer(w http.ResponseWriter, out any) {
	if table, ok := out.(rows); ok {
		table.send(w)
		return
	}
	doc, ok := out.(text)
	if !ok {
		doc = text{"application/json", encode(out)}
	}
	w.Header().Set("Content-Type", doc.contentType)
	_, _ = w.Write(doc.body) // the client may have disconnected
}

// encode returns an answer as JSON.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("admin: encode an answer: " + err.Error()) // a mistake in this package's types
	}
	return b.Bytes()
}

// isPlain reports whether a text from a URL or header is UTF-8 without control characters.
func isPlain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
