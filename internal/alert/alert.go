// Package alert owns the alerts about lines: what is posted to the setting
// alert_url, in which order, and what becomes of what is not taken.
//
// Invariants:
//   - Whoever sends an alert never waits for its receiver.
//   - What waits is bounded; what is dropped or not taken is logged.
//   - The receiver's address is a secret and in no log.
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

// Limits of the alerts.
const (
	maxQueue  = 1000             // alerts that wait
	deadline  = 10 * time.Second // of one try: dial, request and answer
	maxAnswer = 4 << 10          // bytes of an answer that are read
	maxHeader = 16 << 10         // bytes of an answer's header
	maxCause  = 300              // bytes of an error in the log
)

// pauses are those before the second try and the third, the last.
func pauses() []time.Duration { return []time.Duration{time.Second, 5 * time.Second} }

// Alert says that a line, or one model on it, left service or returned to it,
// or that one of its keys is refused or accepted again, as this node sees it. It is
// posted to the setting alert_url as it stands here, with words beside it.
type Alert struct {
	Line  string `json:"line"`
	Model string `json:"model"`           // empty: the whole line
	Form  string `json:"form,omitempty"`  // empty: the model in all forms
	Tools bool   `json:"tools,omitempty"` // requests with tools alone
	Key   string `json:"key,omitempty"`   // one of the line's keys: its position, last characters and reference
	State string `json:"state"`
	Cause string `json:"cause"` // empty for a return
	At    int64  `json:"at"`    // Unix seconds
}

// Sender posts alerts to one address (operator.md, Lines). The address is a
// secret, since who knows it can post there too: it never reaches the log.
type Sender struct {
	url       *url.URL // nil: there is no address, so nothing is kept or posted
	secrets   []string // parts of the address that errors may repeat
	transport http.RoundTripper
	log       *slog.Logger
	queue     chan Alert
	dropped   atomic.Int64 // since the queue was last empty
}

// New makes the sender for an address; with an empty one it does nothing.
// A nil transport is one of its own, which asks no proxy of the environment.
func New(address string, log *slog.Logger, transport http.RoundTripper) *Sender {
	if transport == nil {
		transport = newTransport()
	}
	s := &Sender{transport: transport, log: log, queue: make(chan Alert, maxQueue)}
	if address == "" {
		return s
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		log.Error("alert_url is no address, so there are no alerts") // settings are read with care: a mistake of ours
		return s
	}
	s.url, s.secrets = u, secretsOf(address, u)
	return s
}

// newTransport makes one connection an alert: they are rare, and one that has
// waited for hours may be dead without anybody knowing.
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

// Send hands an alert over to Run. It never waits: when too many wait already
// the alert is dropped, which the log says once until no more wait.
func (s *Sender) Send(alert Alert) {
	if s.url == nil {
		return
	}
	select {
	case s.queue <- alert:
	default:
		if s.dropped.Add(1) == 1 {
			s.log.Warn("alerts about lines are dropped: too many wait for alert_url", "waiting", maxQueue)
		}
	}
}

// Run posts alerts in their order until ctx ends; what waits then, or is being
// posted, until work ends, a little later. It is called once.
func (s *Sender) Run(ctx, work context.Context) {
	if s.url == nil {
		return
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case alert := <-s.queue:
			s.post(work, ctx.Done(), alert)
			s.count()
		}
	}
	for work.Err() == nil && len(s.queue) > 0 { // nobody else takes from it
		s.post(work, ctx.Done(), <-s.queue)
	}
	if n := len(s.queue); n > 0 {
		s.log.Warn("alerts about lines were not posted before the stop", "alerts", n)
	}
}

// count logs how many alerts were dropped, once no more wait.
func (s *Sender) count() {
	if len(s.queue) > 0 {
		return
	}
	if n := s.dropped.Swap(0); n > 0 {
		s.log.Warn("alerts about lines were dropped", "alerts", n)
	}
}

// post tries until the alert is taken, at most three times. A stop cuts the
// pauses short.
func (s *Sender) post(ctx context.Context, stop <-chan struct{}, alert Alert) {
	body, err := json.Marshal(newMessage(alert))
	if err != nil {
		s.log.Error("an alert about a line that is no JSON", "line", alert.Line, "error", err)
		return
	}
	pauses := pauses()
	for try := 0; ; try++ {
		if err = s.try(ctx, body); err == nil {
			return
		}
		if try == len(pauses) || ctx.Err() != nil {
			s.log.Warn("an alert about a line was not taken by alert_url",
				"line", alert.Line, "model", alert.Model, "state", alert.State, "tries", try+1, "error", s.redact(err))
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

// try posts a body once. It goes past http.Client, which would follow
// redirects to wherever the receiver says.
func (s *Sender) try(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	bare := *s.url
	bare.User = nil
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, bare.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "tollgate")
	if user := s.url.User; user != nil {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	answer, err := s.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	// What it says does not matter, but a connection that is closed before the
	// end of the answer looks like a failure to the receiver.
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("answered with status %d", answer.StatusCode)
	}
	return nil
}

// secretsOf returns the parts of an address that tell who may post there,
// the whole before its parts.
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

// redact returns an error without the address, which net/http puts into its
// own and a receiver may repeat.
func (s *Sender) redact(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	text := err.Error()
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "")
}
