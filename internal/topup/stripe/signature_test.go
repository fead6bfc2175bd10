package stripe

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/topup"
)

var at = time.Unix(1_800_000_000, 0)

// FuzzSignature checks that only the header of the body and the secret is accepted.
func FuzzSignature(f *testing.F) {
	body := []byte(`{"id":"evt_1"}`)
	valid := fakepayment.Sign(fakepayment.StripeSecret, body, at)
	for _, header := range []string{valid, "", "t=1", "t=,v1=", "v1=00,t=1800000000", valid + ",v1=zz", ",,,=,t=9", "t=1800000000,v0=00"} {
		f.Add(header, body)
	}
	f.Add(valid, []byte("{}"))
	f.Fuzz(func(t *testing.T, header string, sent []byte) {
		err := checkSignature(header, fakepayment.StripeSecret, sent, at)
		if err == nil && (string(sent) != string(body) || len(header) < 64) {
			t.Errorf("%q of %q: got no error, want one", header, sent)
		}
		if err != nil && !errors.Is(err, topup.ErrForged) {
			t.Errorf("%q: got %v, want ErrForged", header, err)
		}
	})
}

// FuzzEvent reads arbitrary bodies.
func FuzzEvent(f *testing.F) {
	for _, body := range []string{`{}`, `null`, `{"data":{"object":{"payment_intent":"pi_1"}}}`,
		`{"data":{"object":{"payment_intent":{"id":"pi_1"}}}}`,
		`{"data":{"object":{"payment_intent":7}}}`, `{"data":{"object":{"metadata":null,"payment_intent":null}}}`, `[`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := readEvent(body); err != nil && !errors.Is(err, topup.ErrForged) {
			t.Errorf("%q: got %v, want ErrForged", body, err)
		}
	})
}

// TestSignatures accepts one of several signatures, and ages up to five minutes.
func TestSignatures(t *testing.T) {
	t.Parallel()
	body := []byte("{}")
	valid := fakepayment.Sign(fakepayment.StripeSecret, body, at)
	for _, c := range []struct {
		header, secret string
		now            time.Time
		want           bool
	}{
		{valid, fakepayment.StripeSecret, at, true},
		{fmt.Sprintf("t=%d,v1=00,%s", at.Unix(), valid[13:]), fakepayment.StripeSecret, at, true},
		{valid, fakepayment.StripeSecret, at.Add(tolerance), true},
		{valid, fakepayment.StripeSecret, at.Add(tolerance + time.Second), false},
		{valid, fakepayment.StripeSecret, at.Add(-tolerance - time.Second), false},
		{valid, fakepayment.StripeSecret + "0", at, false},
		{fakepayment.Sign("", body, at), "", at, false},
		{"t=1800000001," + valid[13:], fakepayment.StripeSecret, at, false},
		{"t=1800000001," + valid, fakepayment.StripeSecret, at, false},
	} {
		if err := checkSignature(c.header, c.secret, body, c.now); (err == nil) != c.want {
			t.Errorf("%s at %s: got %v, want valid %t", c.header, c.now, err, c.want)
		}
	}
}
