package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"tollgate/internal/account"
	"tollgate/internal/admin"
	"tollgate/internal/egress"
	"tollgate/internal/httpapi"
	"tollgate/internal/ledger/sheet"
	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// Operator is the operator API inside this process, for commands that run next to the service. Commands use
// the same handlers as the API's requests, without a network and without the operator's token.
type Operator struct {
	db      *store.DB
	keys    *account.Keys
	handler http.Handler
	token   string // random; only this Operator uses it
}

// OperatorAnswer is an answer of the operator API.
type OperatorAnswer struct {
	Status int
	Body   []byte
}

// OperatorRequest is a request to the operator API.
type OperatorRequest struct {
	Method string
	Path   string // below the API's base, with its query
	Body   []byte
	Once   string // the Idempotency-Key, if not empty
}

// onceSecret keys the fingerprints of commands with an Idempotency-Key. They are the same in every
// process, and need not be secret, because no such command sends a password.
const onceSecret = "tollgate command"

// OpenOperator opens the database of the settings, as OpenDatabase does, and the operator API on
// it. It creates no database.
func OpenOperator(ctx context.Context, s *Settings) (*Operator, error) {
	if err := checkMail(s); err != nil {
		return nil, err
	}
	db, err := OpenDatabase(ctx, s, false)
	if err != nil {
		return nil, err
	}
	if s, err = withSecretKey(s); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	mails, err := s.newMailer(db, nil, mail.Options{})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	o := &Operator{db: db, keys: account.NewKeys(account.KeysOptions{DB: db}), token: rand.Text()}
	o.handler = admin.New(admin.Options{
		Token: httpapi.NewOperatorToken(o.token), OnceSecret: []byte(onceSecret), DB: db, Keys: o.keys,
		Passwords: account.NewPasswords(), Providers: Providers(), PublicURL: cmp.Or(s.PublicURL, nearBase(s.Listen)),
		Webhooks: webhook.New(webhook.Options{
			DB: db, Guard: egress.New(s.PrivateNetworks), Timeout: s.WebhookTimeout, Retention: s.DeliveryRetention,
		}),
		Mails: mails, SecretKeys: s.SecretKeys, Log: quiet(), Attached: true,
	})
	return o, nil
}

// Do sends one request. The error is nil for an answer with any status.
func (o *Operator) Do(ctx context.Context, request OperatorRequest) (answer OperatorAnswer, err error) {
	r, err := request.to(ctx, "", o.token)
	if err != nil {
		return OperatorAnswer{}, err
	}
	defer func() {
		switch broken := recover(); broken {
		case nil:
		case http.ErrAbortHandler: // an answer sent in parts
			answer, err = OperatorAnswer{}, cmp.Or(ctx.Err(), errors.New("the database could not be read to the end"))
		default:
			panic(broken)
		}
	}()
	w := &recorder{header: make(http.Header), status: http.StatusOK}
	o.handler.ServeHTTP(w, r)
	return OperatorAnswer{w.status, w.body.Bytes()}, ctx.Err()
}

// to returns the HTTP request to a service at base.
func (request OperatorRequest) to(ctx context.Context, base, token string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, base+admin.Base+request.Path, bytes.NewReader(request.Body))
	if err != nil {
		return nil, fmt.Errorf("ask the operator API: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if request.Once != "" {
		r.Header.Set("Idempotency-Key", request.Once)
	}
	return r, nil
}

// CSVCell returns a text as a CSV cell that no spreadsheet evaluates as a formula.
func CSVCell(text string) string { return sheet.Cell(text) }

// Close closes the database.
func (o *Operator) Close() error {
	o.keys.Close()
	return o.db.Close()
}

// recorder stores an answer in memory.
type recorder struct {
	header      http.Header
	status      int
	wroteHeader bool
	body        bytes.Buffer
}

// Header returns the answer's header.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the first status.
func (r *recorder) WriteHeader(status int) {
	if !r.wroteHeader {
		r.status, r.wroteHeader = status, true
	}
}

// Write keeps a part of the body.
func (r *recorder) Write(p []byte) (int, error) {
	r.wroteHeader = true
	return r.body.Write(p)
}
