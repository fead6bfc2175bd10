package line

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
	alertQueue    = 1000             // alerts that wait
	alertDeadline = 10 * time.Second // of one try: dial, request and answer
	alertAnswer   = 4 << 10          // bytes of an answer that are read
	alertHeader   = 16 << 10         // bytes of an answer's header
	alertLinger   = 2 * time.Second  // for what waits when the node stops
	alertCause    = 300              // bytes of an error in the log
)

// alertWaits are the pauses before the second try and the third, the last.
func alertWaits() []time.Duration { return []time.Duration{time.Second, 5 * time.Second} }

// Alert says that a line, or one model on it, left service or returned to it,
// as this node sees it. It is posted to the setting alert_url as it stands here.
type Alert struct {
	Line  string `json:"line"`
	Model string `json:"model"` // empty: the whole line
	State string `json:"state"`
	Cause string `json:"cause"` // empty for a return
	At    int64  `json:"at"`    // Unix seconds
}

// alerts posts alerts to one address. Its address is a secret, since who knows
// it can post there too: it never reaches the log.
type alerts struct {
	url       *url.URL // nil: there is no address, so nothing is kept or posted
	secrets   []string // parts of the address that errors may repeat
	transport http.RoundTripper
	log       *slog.Logger
	queue     chan Alert
	dropped   atomic.Int64 // since the queue was last empty
}

// newAlerts makes the sender for an address; with an empty one it does nothing.
// A nil transport is one of its own, which asks no proxy of the environment.
func newAlerts(address string, log *slog.Logger, transport http.RoundTripper) *alerts {
	if transport == nil {
		transport = alertTransport()
	}
	a := &alerts{transport: transport, log: log, queue: make(chan Alert, alertQueue)}
	if address == "" {
		return a
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		log.Error("alert_url is no address, so there are no alerts") // settings are read with care: a mistake of ours
		return a
	}
	a.url, a.secrets = u, secretsOf(address, u)
	return a
}

// alertTransport makes one connection an alert: they are rare, and one that has
// waited for hours may be dead without anybody knowing.
func alertTransport() http.RoundTripper {
	dialer := &net.Dialer{Timeout: alertDeadline}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    alertDeadline,
		MaxResponseHeaderBytes: alertHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true,
	}
}

// send hands an alert over to run. It never waits: when too many wait already
// the alert is dropped, which the log says once until no more wait.
func (a *alerts) send(alert Alert) {
	if a.url == nil {
		return
	}
	select {
	case a.queue <- alert:
	default:
		if a.dropped.Add(1) == 1 {
			a.log.Warn("alerts about lines are dropped: too many wait for alert_url", "waiting", alertQueue)
		}
	}
}

// run posts alerts in their order until ctx ends; what waits then, or is being
// posted, has two seconds more. It is called once.
func (a *alerts) run(ctx context.Context) {
	if a.url == nil {
		return
	}
	work, cancel := linger(ctx, alertLinger)
	defer cancel()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case alert := <-a.queue:
			a.post(work, ctx.Done(), alert)
			a.count()
		}
	}
	for work.Err() == nil && len(a.queue) > 0 { // nobody else takes from it
		a.post(work, ctx.Done(), <-a.queue)
	}
	if n := len(a.queue); n > 0 {
		a.log.Warn("alerts about lines were not posted before the stop", "alerts", n)
	}
}

// count logs how many alerts were dropped, once no more wait.
func (a *alerts) count() {
	if len(a.queue) > 0 {
		return
	}
	if n := a.dropped.Swap(0); n > 0 {
		a.log.Warn("alerts about lines were dropped", "alerts", n)
	}
}

// linger returns a context that ends d after ctx does, or when it is cancelled,
// which leaves no goroutine behind.
func linger(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		rest := time.NewTimer(d)
		defer rest.Stop()
		select {
		case <-rest.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, func() {
		cancel()
		if !stop() {
			<-ended
		}
	}
}

// post tries until the alert is taken, at most three times. A stop cuts the
// pauses short.
func (a *alerts) post(ctx context.Context, stop <-chan struct{}, alert Alert) {
	body, err := json.Marshal(alert)
	if err != nil {
		a.log.Error("an alert about a line that is no JSON", "line", alert.Line, "error", err)
		return
	}
	waits := alertWaits()
	for try := 0; ; try++ {
		if err = a.try(ctx, body); err == nil {
			return
		}
		if try == len(waits) || ctx.Err() != nil {
			a.log.Warn("an alert about a line was not taken by alert_url",
				"line", alert.Line, "model", alert.Model, "state", alert.State, "tries", try+1, "error", a.redact(err))
			return
		}
		pause := time.NewTimer(waits[try])
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
func (a *alerts) try(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, alertDeadline)
	defer cancel()
	bare := *a.url
	bare.User = nil
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, bare.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "tollgate")
	if user := a.url.User; user != nil {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	answer, err := a.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	// What it says does not matter, but a connection that is closed before the
	// end of the answer looks like a failure to the receiver.
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, alertAnswer))
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
func (a *alerts) redact(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	text := err.Error()
	for _, secret := range a.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return strings.ToValidUTF8(text[:min(len(text), alertCause)], "")
}
