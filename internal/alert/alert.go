// Package alert owns the alerts about lines and failed changes of the catalog: it mails them to the
// addresses in alert_mail, and posts them to alert_url in order and tries failed posts again.
//
// Invariants:
//   - Send never waits for the receiver.
//   - The queue is bounded; dropped and failed alerts are logged.
//   - The receiver's address is secret and never logged.
package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Limits of alerts.
const (
	maxQueue  = 1000             // queued alerts
	deadline  = 10 * time.Second // of one attempt: dial, request and response
	maxAnswer = 4 << 10          // bytes read from a response's body
	maxHeader = 16 << 10         // bytes of a response's header
	maxCause  = 300              // bytes of an error in the log
)

// pauses are the delays before the second and the third attempt. There is no fourth.
func pauses() []time.Duration { return []time.Duration{time.Second, 5 * time.Second} }

// Alert reports a change seen by this node: a line or its model left service or returned, a provider
// rejected or accepted a key, or a scheduled change of the catalog failed.
type Alert struct {
	Line  string `json:"line"`            // empty for a change of the catalog
	Model string `json:"model"`           // empty for the whole line
	Form  string `json:"form,omitempty"`  // empty for all forms
	Tools bool   `json:"tools,omitempty"` // only requests with tools
	Key   string `json:"key,omitempty"`   // position, last characters and reference of one of the line's keys
	State string `json:"state"`
	Cause string `json:"cause"` // empty if the line, model or key is back
	At    int64  `json:"at"`    // Unix seconds

	Change string `json:"change,omitempty"` // ID of a scheduled change of the catalog
	Mailed bool   `json:"-"`                // the caller of Send has mailed the alert already
}

// Sender posts alerts to one address (operator.md, Lines) and mails them. The address is secret,
// because anyone who knows it can post there.
type Sender struct {
	mails     Mails
	url       *url.URL // if nil, alerts are not posted
	secrets   []string // parts of the address to redact from errors
	transport http.RoundTripper
	log       *slog.Logger
	queue     chan Alert
	dropped   atomic.Int64 // since the queue was last empty

	mailed hourCount // owned by Run
}

// New returns a sender. Without an address it posts no alerts. If transport is nil, the
// sender uses its own transport without proxies of the environment.
func New(address string, mails Mails, log *slog.Logger, transport http.RoundTripper) *Sender {
	if transport == nil {
		transport = newTransport()
	}
	s := &Sender{mails: mails, transport: transport, log: log, queue: make(chan Alert, maxQueue)}
	if address == "" {
		return s
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		log.Error("alert_url is not a valid address, so no alerts are sent") // a bug: the settings were checked
		return s
	}
	s.url, s.secrets = u, secretsOf(address, u)
	return s
}

// newTransport returns a transport without keep-alive: alerts are rare, and a connection
// may die unnoticed in hours of silence.
func newTransport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: deadline}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    deadline,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true,
	}
}

// Send queues an alert and never waits. If the queue is full, it drops the alert. It logs the first drop
// until the queue is empty again.
func (s *Sender) Send(alert Alert) {
	if s.off() {
		return
	}
	select {
	case s.queue <- alert:
	default:
		if s.dropped.Add(1) == 1 {
			s.log.Warn("alerts are dropped: too many wait", "waiting", maxQueue)
		}
	}
}

// off reports whether alerts are discarded.
func (s *Sender) off() bool { return s.url == nil && !s.mails.on() }

// Run mails and posts alerts in order until ctx ends, and then the queued alerts until work ends. Run
// must be called once.
func (s *Sender) Run(ctx, work context.Context) {
	if s.off() {
		return
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case alert := <-s.queue:
			s.deliver(work, ctx.Done(), alert)
			s.logDropped()
		}
	}
	for work.Err() == nil && len(s.queue) > 0 { // only Run receives from the queue
		s.deliver(work, ctx.Done(), <-s.queue)
	}
	if n := len(s.queue); n > 0 {
		s.log.Warn("alerts were not sent before the stop", "alerts", n)
	}
}

// deliver mails an alert, and posts it. A mail needs only the database, so it goes first.
func (s *Sender) deliver(ctx context.Context, stop <-chan struct{}, alert Alert) {
	if s.mails.on() && !alert.Mailed {
		s.mail(ctx, alert)
	}
	if s.url != nil {
		s.post(ctx, stop, alert)
	}
}

// logDropped logs the number of dropped alerts when the queue is empty.
func (s *Sender) logDropped() {
	if len(s.queue) > 0 {
		return
	}
	if n := s.dropped.Swap(0); n > 0 {
		s.log.Warn("alerts were dropped", "alerts", n)
	}
}

// post posts an alert in at most three attempts. A stop ends the pauses early.
func (s *Sender) post(ctx context.Context, stop <-chan struct{}, alert Alert) {
	body, err := json.Marshal(newMessage(alert))
	if err != nil {
		s.log.Error("an alert cannot be encoded as JSON", "line", alert.Line, "error", err)
		return
	}
	pauses := pauses()
	for try := 0; ; try++ {
		if err = s.try(ctx, body); err == nil {
			return
		}
		if try == len(pauses) || ctx.Err() != nil {
			s.log.Warn("an alert was not taken by alert_url", "change", alert.Change, "line", alert.Line,
				"model", alert.Model, "state", alert.State, "tries", try+1, "error", s.redact(err))
			return
		}
		pause := time.NewTimer(pauses[try])
		select {
		case <-pause.C:
		case <-stop:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// try posts a body once. It does not use http.Client, which would follow redirects.
func (s *Sender) try(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	target := *s.url
	target.User = nil
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "tollgate")
	if user := s.url.User; user != nil {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	resp, err := s.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// A receiver may treat a connection closed before the end of its response as a failure.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("answered with status %d", resp.StatusCode)
	}
	return nil
}

// secretsOf returns the secret parts of an address. The whole address comes first.
func secretsOf(address string, u *url.URL) []string {
	password, _ := u.User.Password()
	parts := []string{address, u.String(), u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery, password, u.User.Username()}
	var secrets []string
	for _, part := range parts {
		if len(part) > 1 {
			secrets = append(secrets, part)
		}
	}
	return secrets
}

// redact returns the text of an error without the address, because errors of net/http contain it.
func (s *Sender) redact(err error) string {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	text := err.Error()
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "")
}
