package stripe

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/topup"
)

const (
	// tolerance bounds the age of a message, so that an old one cannot be replayed.
	tolerance = 5 * time.Minute
	// maxSignatures bounds the signatures that are compared. Stripe sends two while a secret changes.
	maxSignatures = 16
)

// checkSignature checks the header Stripe-Signature: t=TIME,v1=HEX,… The signature is the HMAC-SHA256 of
// `TIME.BODY` with the secret as it is written. It returns topup.ErrForged if no signature is valid.
func checkSignature(header, secret string, body []byte, now time.Time) error {
	if secret == "" { // an HMAC with an empty key would verify anything
		return fmt.Errorf("%w: there is no secret", topup.ErrForged)
	}
	stamp, signatures := "", []string{}
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case name == "t" && stamp == "":
			stamp = value
		case name == "v1" && len(signatures) < maxSignatures:
			signatures = append(signatures, value)
		}
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return fmt.Errorf("%w: the header has no time", topup.ErrForged)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	want, valid := mac.Sum(nil), false
	for _, text := range signatures {
		got, err := hex.DecodeString(text)
		valid = valid || err == nil && hmac.Equal(got, want)
	}
	age := now.Sub(time.Unix(seconds, 0))
	switch {
	case !valid:
		return topup.ErrForged
	case age > tolerance || age < -tolerance:
		return fmt.Errorf("%w: it is %s old", topup.ErrForged, age.Round(time.Second))
	}
	return nil
}

// event is a message of Stripe. Only the ids of its object are used.
type event struct {
	Type string `json:"type"`
	Live bool   `json:"livemode"`
	Data struct {
		Object struct {
			ID        string            `json:"id"`
			Object    string            `json:"object"`
			Reference string            `json:"client_reference_id"`
			Metadata  map[string]string `json:"metadata"`
			Intent    *intent           `json:"payment_intent"`
		} `json:"object"`
	} `json:"data"`
}

// readEvent reads the body of a message.
func readEvent(body []byte) (e event, err error) {
	if err := json.Unmarshal(body, &e); err != nil {
		return e, fmt.Errorf("%w: the body is not an event", topup.ErrForged)
	}
	return e, nil
}

// fraudWarning is the type of a message that a card's bank suspects fraud.
const fraudWarning = "radar.early_fraud_warning.created"

// Verify implements topup.PaymentProvider. For a message about a refund, a dispute or a charge, it reads
// the payment intent to find the top-up. Other objects, and those of other programs with the same Stripe
// account, belong to no top-up.
func (c *Service) Verify(ctx context.Context, r *http.Request, body []byte) (topup.Hint, error) {
	if r.Method != http.MethodPost {
		return topup.Hint{}, topup.ErrForged
	}
	if err := checkSignature(r.Header.Get("Stripe-Signature"), c.o.Secret, body, c.o.Now()); err != nil {
		return topup.Hint{}, err
	}
	e, err := readEvent(body)
	if err != nil {
		return topup.Hint{}, err
	}
	object := e.Data.Object
	n := topup.Hint{Object: object.ID}
	switch {
	case e.Live != c.live: // Query cannot read an object of the other mode
		if object.Metadata[metadata] != "" {
			n.Warning = "Stripe sends messages of its other mode (test or live) to this address; they are ignored"
		}
		return n, nil
	case object.Object == "checkout.session":
		if object.Metadata[metadata] != "" {
			n.Topup, n.Session = object.Metadata[metadata], object.ID
		}
		return n, nil
	case object.Metadata[metadata] != "":
		n.Topup = object.Metadata[metadata]
		if object.Metadata[automatic] != "" {
			n.Session = object.ID
		}
	case object.Intent != nil && object.Intent.ID != "":
		if n.Topup, err = c.topupOf(ctx, object.Intent.ID); err != nil {
			return n, err
		}
	}
	if e.Type == fraudWarning && n.Topup != "" {
		n.Warning = "the bank of the card suspects fraud; a refund now may avoid a dispute and its fee"
	}
	return n, nil
}

// topupOf returns the top-up that a payment intent names, or an empty string.
func (c *Service) topupOf(ctx context.Context, id string) (string, error) {
	var i intent
	err := c.call(ctx, http.MethodGet, "/v1/payment_intents/"+url.PathEscape(id), url.Values{}, "", &i)
	if errors.Is(err, topup.ErrRefused) || isMissing(err) {
		return "", nil
	}
	return i.Metadata[metadata], err
}
