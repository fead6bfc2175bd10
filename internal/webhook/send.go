package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/egress"
)

// Bounds for reading an answer. The content does not matter, but reading a short answer to its end
// keeps the receiver from seeing an aborted connection.
const (
	maxAnswer  = 4 << 10 // bytes
	answerTime = time.Second
)

// message is the request of an attempt.
type message struct {
	event, url, body, secret string
}

// send makes one attempt. A 2xx is a success even if the body never ends.
func (w *Webhooks) send(ctx context.Context, m message) outcome {
	start := w.opts.Now()
	o := outcome{kind: failed, atMS: start.UnixMilli()}
	attemptCtx, cancel := context.WithTimeout(ctx, w.opts.Timeout)
	defer cancel()
	resp, err := w.post(attemptCtx, m, start)
	o.tookMS = w.opts.Now().Sub(start).Milliseconds()
	if err != nil {
		o.err = egress.Explain(err)
		if ctx.Err() != nil {
			o.kind, o.err = aborted, "broken off: the service was stopping"
		}
		return o
	}
	o.status = resp.StatusCode
	timer := time.AfterFunc(answerTime, cancel)
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // the end of the body does not matter
	timer.Stop()
	_ = resp.Body.Close()
	switch {
	case o.status >= 200 && o.status < 300:
		o.kind = delivered
	case o.status >= 300 && o.status < 400:
		o.err = fmt.Sprintf("the receiver answered %d: redirects are not followed", o.status)
	default:
		o.err = fmt.Sprintf("the receiver answered %d", o.status)
	}
	return o
}

// post sends a message in the form of Standard Webhooks (interface.md, Events).
func (w *Webhooks) post(ctx context.Context, m message, now time.Time) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, strings.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signature, err := sign(m.secret, m.event, timestamp, m.body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "tollgate")
	req.Header["webhook-id"] = []string{m.event}
	req.Header["webhook-timestamp"] = []string{timestamp}
	req.Header["webhook-signature"] = []string{signature}
	return w.client.Do(req)
}

// sign returns the webhook-signature of a body, an HMAC over the event's id, the timestamp and the
// body.
func sign(secret, event, timestamp, body string) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return "", fmt.Errorf("read a signing secret: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, event+"."+timestamp+"."+body) // a hash's Write never fails
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}
