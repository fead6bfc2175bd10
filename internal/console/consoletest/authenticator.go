package consoletest

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // RFC 6238 requires SHA-1
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Authenticator generates time-based codes (RFC 6238).
type Authenticator struct {
	secret    []byte
	setupStep int64 // 30-second steps since 1970 at setup
}

var (
	secretField = regexp.MustCompile(`id="secret" value="([A-Z2-7]{32})"`)
	codeText    = regexp.MustCompile(`[0-9A-Z]{5}(?:-[0-9A-Z]{5}){3}`)
)

// Authenticator returns an authenticator with the secret on the page.
func (a Answer) Authenticator(t *testing.T) *Authenticator {
	t.Helper()
	match := secretField.FindStringSubmatch(a.Body.String())
	if match == nil || !strings.Contains(a.Body.String(), `<svg class="qr"`) {
		t.Fatalf("the page has no secret or no QR code: %s", a.Body)
	}
	secret, err := base32.StdEncoding.DecodeString(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return &Authenticator{secret: secret, setupStep: time.Now().Unix() / 30}
}

// Code returns the code for a number of 30-second steps after setup.
func (a *Authenticator) Code(step int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(a.setupStep+step)) //nolint:gosec // after 1970
	mac := hmac.New(sha1.New, a.secret)
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	offset := sum[19] & 0xf
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[offset:offset+4])&0x7fff_ffff%1_000_000)
}

// Codes returns the recovery codes on a page.
func (a Answer) Codes() []string { return codeText.FindAllString(a.Body.String(), -1) }

// EnableFactor enables the second factor of the browser's user.
func (b *Browser) EnableFactor(t *testing.T) (app *Authenticator, recovery []string) {
	t.Helper()
	app = b.Post("/console/settings/factor", "password", Password).Authenticator(t)
	got := b.Post("/console/settings/factor/confirm", "code", app.Code(0))
	got.Want(t, 200, "Your second factor is on.")
	return app, got.Codes()
}
