package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// Security is the encryption of the connection to the SMTP server.
type Security string

// The kinds of encryption. There is no fallback from one to another.
const (
	StartTLS Security = "starttls" // STARTTLS is required
	TLS      Security = "tls"      // from the first byte
	Plain    Security = "none"     // only for a server on this machine
)

// SMTPServer is an SMTP server.
type SMTPServer struct {
	Host           string
	Port           int
	Security       Security
	User, Password string         // without a user there is no authentication
	Roots          *x509.CertPool // the trusted certificates; nil means those of the system
}

// timeout bounds the dial, and each exchange of a mail.
const timeout = 30 * time.Second

// maxError bounds the stored words of a server, in bytes.
const maxError = 500

// message is a mail to send.
type message struct {
	id                                 string
	recipient, subject, text, htmlText string
	createdMS, resends                 int64
}

// outcome is the result of an attempt.
type outcome struct {
	sent    bool
	refused bool   // the server refused this mail for good (5xx)
	err     string // the server's words; empty if sent
}

// session is a connection to the server for one mail after the other.
type session struct {
	client *gomail.Client
	conn   *smtp.Client
	stop   func() bool // ends the watch of the context
}

// dial connects to the server, starts TLS and authenticates. The connection breaks when ctx ends.
func (m *Mailer) dial(ctx context.Context) (*session, error) {
	s := m.opts.Server
	config := &tls.Config{ServerName: s.Host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
	var raw net.Conn
	options := []gomail.Option{gomail.WithPort(s.Port), gomail.WithTimeout(timeout), gomail.WithTLSConfig(config),
		gomail.WithoutNoop(), gomail.WithDialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
			dialer := &net.Dialer{Timeout: timeout}
			var err error
			if s.Security == TLS {
				raw, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
			} else {
				raw, err = dialer.DialContext(ctx, network, address)
			}
			return raw, err
		})}
	switch s.Security {
	case TLS:
		options = append(options, gomail.WithSSL())
	case StartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case Plain:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	}
	if s.User != "" {
		options = append(options, gomail.WithUsername(s.User), gomail.WithPassword(s.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5))
	}
	client, err := gomail.NewClient(s.Host, options...)
	if err != nil {
		return nil, err
	}
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		if raw != nil {
			_ = raw.Close() // the library leaves it open after a failed greeting
		}
		return nil, err
	}
	return &session{client, conn, context.AfterFunc(ctx, func() { _ = raw.Close() })}, nil
}

// close ends the connection. The server has answered all mails already, so errors do not matter.
func (s *session) close() {
	s.stop()
	_ = s.client.CloseWithSMTPClient(s.conn)
}

// send sends a mail. usable is false if the connection is broken.
func (s *session) send(from, service string, m message) (o outcome, usable bool) {
	msg, err := newMessage(from, service, m)
	if err != nil {
		return outcome{refused: true, err: clip(err.Error())}, true
	}
	err = s.client.SendWithSMTPClient(s.conn, msg)
	if msg.IsDelivered() { // an error after the server's 250, for example at RSET, must not repeat the mail
		return outcome{sent: true}, err == nil
	}
	if err == nil {
		err = errors.New("the SMTP library reported neither success nor failure")
	}
	o = outcome{err: explain(err)}
	failed, ok := errors.AsType[*gomail.SendError](err)
	if !ok || failed.ErrorCode() == 0 {
		return o, false
	}
	// A refusal of the sender is about the settings, which the operator can repair.
	o.refused = failed.ErrorCode() >= 500 && failed.Reason != gomail.ErrSMTPMailFrom
	// After a refusal at DATA, the library does not reset the session, and the server would refuse the next mail.
	return o, s.conn.Reset() == nil
}

// newMessage returns a mail in MIME. Message-ID and Date come from the row, so they stay the same if the
// mail is repeated.
func newMessage(from, service string, m message) (*gomail.Msg, error) {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := msg.FromFormat(oneLine(service), from); err != nil {
		return nil, err
	}
	if err := msg.To(m.recipient); err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(from, "@")
	msg.SetMessageIDWithValue(m.messageID() + "@" + domain)
	msg.SetDateWithValue(time.UnixMilli(m.createdMS).UTC())
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	msg.Subject(oneLine(m.subject))
	msg.SetBodyString(gomail.TypeTextPlain, m.text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.htmlText)
	return msg, nil
}

// messageID returns the part of the Message-ID before the @. Each resend by an operator has a new one,
// because a receiver may drop a second mail with the same id.
func (m message) messageID() string {
	if m.resends == 0 {
		return m.id
	}
	return m.id + "." + strconv.FormatInt(m.resends, 10)
}

// explain returns the words of a server or of the network, without the library's suffix.
func explain(err error) string {
	text, _, _ := strings.Cut(err.Error(), ", affected ")
	return clip(text)
}

// clip bounds a text to store.
func clip(text string) string {
	text = oneLine(strings.ToValidUTF8(text, ""))
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}
