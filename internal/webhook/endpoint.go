package webhook

import (
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// The types of events (interface.md, Events).
const (
	ImageCompleted = "image.completed"
	ImageFailed    = "image.failed"
	VideoCompleted = "video.completed"
	VideoFailed    = "video.failed"
	BalanceLow     = "balance.low"
	TestEvent      = "webhook.test"
)

// types are the types for an account to choose from, in the order of the documentation. Test sends
// TestEvent even if the account did not choose it.
var types = []string{VideoCompleted, VideoFailed, ImageCompleted, ImageFailed, BalanceLow, TestEvent}

// Types returns the types of events for an account to choose from, in the order of the documentation.
func Types() []string { return slices.Clone(types) }

// Endpoint is an account's receiver of events.
type Endpoint struct {
	URL    string   // empty if the webhook is off
	Events []string // chosen types
	Secret string   // whsec_…; ignored by PutEndpointTx
}

// OpenTx creates the signing secret of a new account. A second call is a no-op.
func OpenTx(tx *store.Tx, account string) error {
	_, err := tx.Exec(`INSERT INTO webhook_endpoint (account, secret, url, receiver, events) VALUES ($1, $2, '', '', ' ')
		ON CONFLICT (account) DO NOTHING`, account, newSecret())
	if err != nil {
		return fmt.Errorf("create a signing secret: %w", err)
	}
	return nil
}

// EndpointTx returns the endpoint of an account, which must exist. If the account is older than
// webhooks, EndpointTx creates its secret, so the transaction must be writable.
func EndpointTx(tx *store.Tx, account string) (Endpoint, error) {
	e, err := endpointTx(tx, account)
	if !errors.Is(err, sql.ErrNoRows) {
		return e, err
	}
	if err := OpenTx(tx, account); err != nil {
		return Endpoint{}, err
	}
	return endpointTx(tx, account)
}

// EndpointOrZeroTx is EndpointTx for a read-only transaction. An account older than webhooks has an
// empty endpoint.
func EndpointOrZeroTx(tx *store.Tx, account string) (Endpoint, error) {
	e, err := endpointTx(tx, account)
	if errors.Is(err, sql.ErrNoRows) {
		return Endpoint{}, nil
	}
	return e, err
}

func endpointTx(tx *store.Tx, account string) (e Endpoint, err error) {
	var events string
	err = tx.QueryRow(`SELECT url, events, secret FROM webhook_endpoint WHERE account = $1`, account).Scan(&e.URL, &events, &e.Secret)
	if err != nil {
		return Endpoint{}, fmt.Errorf("read a webhook endpoint: %w", err)
	}
	e.Events = strings.Fields(events)
	return e, nil
}

// PutEndpointTx sets the address and the event types of an account, which must exist. The secret
// stays, and pending deliveries keep their address. PutEndpointTx returns a *fault.Error for an invalid
// url or events, or two joined errors if both are invalid.
func (w *Webhooks) PutEndpointTx(tx *store.Tx, account string, e Endpoint) (Endpoint, error) {
	receiver := ""
	var badURL error
	if e.URL != "" {
		if u, err := w.opts.Guard.Check(e.URL); err != nil {
			badURL = fault.At(fault.InvalidRequest, "url", "%s", egress.Explain(err))
		} else {
			receiver = receiverOf(account, u)
		}
	}
	chosen, badEvents := checkEvents(e.Events)
	if err := errors.Join(badURL, badEvents); err != nil {
		return Endpoint{}, err
	}
	if err := OpenTx(tx, account); err != nil {
		return Endpoint{}, err
	}
	_, err := tx.Exec(`UPDATE webhook_endpoint SET url = $1, receiver = $2, events = $3 WHERE account = $4`,
		e.URL, receiver, " "+strings.Join(chosen, " ")+" ", account)
	if err != nil {
		return Endpoint{}, fmt.Errorf("change a webhook endpoint: %w", err)
	}
	return endpointTx(tx, account)
}

// checkEvents returns the chosen types, each once.
func checkEvents(events []string) ([]string, error) {
	var chosen []string
	for i, event := range events {
		if !slices.Contains(types, event) {
			return nil, fault.At(fault.InvalidRequest, fmt.Sprintf("events[%d]", i), "There is no such type of event. The types are %s.",
				strings.Join(types, ", "))
		}
		if !slices.Contains(chosen, event) {
			chosen = append(chosen, event)
		}
	}
	return chosen, nil
}

// RollTx replaces the signing secret of an account, which must exist, and returns the new secret.
// Attempts that begin after the commit use the new secret.
func RollTx(tx *store.Tx, account string) (string, error) {
	if err := OpenTx(tx, account); err != nil {
		return "", err
	}
	secret := newSecret()
	if _, err := tx.Exec(`UPDATE webhook_endpoint SET secret = $1 WHERE account = $2`, secret, account); err != nil {
		return "", fmt.Errorf("roll a signing secret: %w", err)
	}
	return secret, nil
}

// receiverOf returns the receiver's id, which the delivery limits use as a key.
func receiverOf(account string, u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return account + " " + u.Scheme + " " + strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") + " " + port
}

// secretPrefix begins every signing secret; base64 of the key follows.
const secretPrefix = "whsec_"

// secretSize is the length of the key in bytes: the format requires 24 to 32, and a multiple of
// three needs no base64 padding.
const secretSize = 30

func newSecret() string {
	raw := make([]byte, secretSize)
	rand.Read(raw) // never fails (crypto/rand)
	return secretPrefix + base64.StdEncoding.EncodeToString(raw)
}
