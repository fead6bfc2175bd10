package mail

import (
	"context"
	"errors"
	"net"
	"net/textproto"
	"strings"
	"sync"
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

// startGreylist starts an SMTP server for one connection. It refuses the first DATA for now, and MAIL before the
// end of a mail for good, as RFC 5321 wants it.
func startGreylist(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		c := textproto.NewConn(conn)
		defer func() { _ = c.Close() }()
		line, err, isOpen, seen := "", c.PrintfLine("220 mail.example.com"), false, false
		for err == nil {
			if line, err = c.ReadLine(); err != nil {
				return
			}
			answer := "250 OK"
			switch verb, _, _ := strings.Cut(line, " "); {
			case verb == "MAIL" && isOpen:
				answer = "503 5.5.1 Error: nested MAIL command"
			case verb == "MAIL", verb == "RSET":
				isOpen = verb == "MAIL"
			case verb == "DATA" && !seen:
				seen, answer = true, "451 4.7.1 Greylisted, try again later"
			case verb == "DATA":
				_ = c.PrintfLine("354 Go ahead")
				_, err = c.ReadDotBytes()
				isOpen = false
			}
			err = errors.Join(err, c.PrintfLine("%s", answer))
		}
	})
	t.Cleanup(func() { _ = listener.Close(); group.Wait() })
	return listener.Addr().String()
}

// TestDeferredAtData checks that a mail refused for now at DATA does not end the next one of the connection.
func TestDeferredAtData(t *testing.T) {
	t.Parallel()
	m := newTestMailer(t, Options{Server: serverAt(t, startGreylist(t))})
	conn, err := m.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	letter := message{id: "mail_1", recipient: "ann@example.com", subject: "s", text: "t", htmlText: "<p>h"}
	if o, usable := conn.send("shop@example.com", "Shop", letter); o.sent || o.refused || !usable {
		t.Errorf("the first mail: got %+v, usable %t, want another attempt over the same connection", o, usable)
	}
	if o, _ := conn.send("shop@example.com", "Shop", letter); !o.sent {
		t.Errorf("the second mail: got %+v, want sent", o)
	}
}
