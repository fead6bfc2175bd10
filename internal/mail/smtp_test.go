package mail

import (
	"context"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakemail"
)

// TestSecurity checks each kind of encryption with authentication, and that no trouble makes the client
// fall back to an unencrypted or unauthenticated connection.
func TestSecurity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server   fakemail.Options
		security Security
		password string
		distrust bool
		want     string // part of the error; empty for success
	}{
		"STARTTLS":                 {fakemail.Options{StartTLS: true, Auth: true}, StartTLS, fakemail.Password, false, ""},
		"TLS":                      {fakemail.Options{TLS: true, Auth: true}, TLS, fakemail.Password, false, ""},
		"wrong password":           {fakemail.Options{TLS: true, Auth: true}, TLS, "guess", false, "535"},
		"no STARTTLS offered":      {fakemail.Options{Auth: true}, StartTLS, fakemail.Password, false, "does not support STARTTLS"},
		"no authentication":        {fakemail.Options{StartTLS: true}, StartTLS, fakemail.Password, false, "does not support SMTP AUTH"},
		"untrusted, STARTTLS":      {fakemail.Options{StartTLS: true, Auth: true}, StartTLS, fakemail.Password, true, "certificate"},
		"untrusted, TLS":           {fakemail.Options{TLS: true, Auth: true}, TLS, fakemail.Password, true, "certificate"},
		"TLS at a STARTTLS server": {fakemail.Options{StartTLS: true, Auth: true}, TLS, fakemail.Password, false, "TLS handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fakemail.Start(t, c.server)
			s := serverAt(t, server.Address)
			s.Security, s.User, s.Password, s.Roots = c.security, fakemail.User, c.password, server.Roots
			if c.distrust {
				s.Roots = nil
			}
			m := newTestMailer(t, Options{Server: s})
			conn, err := m.dial(context.Background())
			if c.want != "" {
				if err == nil {
					conn.close()
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("dial: got %v, want an error with %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.close()
			o, usable := conn.send("shop@example.com", "Shop", message{id: "mail_1",
				recipient: "ann@example.com", subject: "s", text: "t", htmlText: "<p>h"})
			if !o.sent || !usable || len(server.Mails()) != 1 {
				t.Errorf("send: got %+v and %d mails, want sent", o, len(server.Mails()))
			}
		})
	}
}
