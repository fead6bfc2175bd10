// Package fakemail owns a fake mail provider: an SMTP server with STARTTLS, TLS and AUTH,
// with faults planned by the test.
//
// Invariants: the server keeps every mail answered with 250, and those taken without an answer;
// the test fails unless a mail is valid MIME with a text and an HTML part; faults are
// used up in order, one for each attempt.
package fakemail

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// The sign-in of a server with authentication.
const (
	User     = "postmaster"
	Password = "correct horse"
)

// Fault is the fault of one attempt.
type Fault int

// The faults.
const (
	None            Fault = iota
	Refuse                // 550 at RCPT: no such user
	Defer                 // 451 at the end of DATA
	Drop                  // closes the connection at the end of DATA and loses the mail
	TakeThenDrop          // takes the mail and closes the connection before the answer
	AnswerThenDrop        // takes the mail, answers 250 and closes the connection
	TakeThenHang          // takes the mail and never answers
	TooManyMessages       // 421 at MAIL
	RefuseSender          // 553 at MAIL
)

// Options configure a server. The zero value is a server without encryption and authentication.
type Options struct {
	StartTLS bool // offers STARTTLS
	TLS      bool // TLS from the first byte
	Auth     bool // requires User and Password
}

// Mail is a mail taken by the server.
type Mail struct {
	From, To   string // of the envelope
	Header     mail.Header
	Subject    string // decoded
	Text, HTML string
}

// Link returns the first address in the text, or an empty string.
func (m Mail) Link() string {
	for word := range strings.FieldsSeq(m.Text) {
		if strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://") {
			return word
		}
	}
	return ""
}

// Server is a running server.
type Server struct {
	Address string         // HOST:PORT
	Roots   *x509.CertPool // trusts the server's certificate
	CertPEM string         // path of a file with the server's certificate

	t       testing.TB
	auth    bool
	mu      sync.Mutex
	mails   []Mail
	faults  []Fault
	hook    func()
	tries   int
	closed  bool
	stopped chan struct{}
	server  *smtp.Server
	listen  net.Listener
}

// Start starts a server on a free port of the loopback interface, or at address if one is given. It
// stops when the test ends.
func Start(t testing.TB, o Options, address ...string) *Server {
	t.Helper()
	s := &Server{t: t, auth: o.Auth, stopped: make(chan struct{})}
	config := s.certify()
	listener, err := net.Listen("tcp", append(address, "127.0.0.1:0")[0])
	if err != nil {
		t.Fatal(err)
	}
	s.Address = listener.Addr().String()
	s.server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{server: s, conn: c}, nil }))
	s.server.ErrorLog = log.New(io.Discard, "", 0)
	s.server.Domain = "mail.example.com"
	s.server.ReadTimeout, s.server.WriteTimeout = time.Minute, time.Minute
	s.server.EnableSMTPUTF8 = true
	if o.StartTLS {
		s.server.TLSConfig = config
	}
	if o.TLS {
		listener = tls.NewListener(listener, config)
	}
	s.listen = listener
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.server.Serve(listener)
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	return s
}

// Stop stops the server. Its mails stay.
func (s *Server) Stop() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if !closed {
		close(s.stopped)
		_ = s.server.Close()
		_ = s.listen.Close() // a server that does not serve yet does not close it
	}
}

// Plan sets the faults of the next attempts.
func (s *Server) Plan(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.Clone(faults)
}

// OnMail sets a function that is called after the server has taken a mail and before its answer.
func (s *Server) OnMail(hook func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Mails returns the taken mails in order.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// Tries returns the number of attempts that reached MAIL.
func (s *Server) Tries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries
}

func (s *Server) nextFault() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if len(s.faults) == 0 {
		return None
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f
}

// certify creates a certificate for the loopback address.
func (s *Server) certify() *tls.Config {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	s.CertPEM = filepath.Join(s.t.TempDir(), "mail.pem")
	if err := os.WriteFile(s.CertPEM, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.Roots = x509.NewCertPool()
	s.Roots.AppendCertsFromPEM(text)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

// session is one connection.
type session struct {
	server   *Server
	conn     *smtp.Conn
	signedIn bool
	fault    Fault
	from, to string
	dropNext bool
}

// AuthMechanisms lists the offered mechanisms.
func (s *session) AuthMechanisms() []string {
	if !s.server.auth {
		return nil
	}
	return []string{sasl.Plain}
}

// Auth checks User and Password.
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != User || password != Password {
			return smtp.ErrAuthFailed
		}
		s.signedIn = true
		return nil
	}), nil
}

// Mail begins an attempt.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.auth && !s.signedIn {
		return smtp.ErrAuthRequired
	}
	s.fault, s.from = s.server.nextFault(), from
	switch s.fault {
	case TooManyMessages:
		return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 7, 0}, Message: "Too many messages, try again later"}
	case RefuseSender:
		return &smtp.SMTPError{Code: 553, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "Sender address not verified"}
	}
	return nil
}

// Rcpt takes a recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.fault == Refuse {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No such user here"}
	}
	s.to = to
	return nil
}

// Data takes the mail.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	switch s.fault {
	case Defer:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "Try again later"}
	case Drop:
		_ = s.conn.Conn().Close()
		return errors.New("dropped")
	}
	m, err := read(raw)
	if err != nil {
		s.server.t.Errorf("a mail to %s is not valid: %v\n%s", s.to, err, raw)
	}
	m.From, m.To = s.from, s.to
	s.server.mu.Lock()
	s.server.mails = append(s.server.mails, m)
	hook := s.server.hook
	s.server.mu.Unlock()
	if hook != nil {
		hook()
	}
	switch s.fault {
	case TakeThenDrop:
		_ = s.conn.Conn().Close()
	case TakeThenHang:
		<-s.server.stopped
	}
	s.dropNext = s.fault == AnswerThenDrop
	return nil
}

// Reset ends an attempt. The server calls it after its answer.
func (s *session) Reset() {
	if s.dropNext {
		_ = s.conn.Conn().Close()
	}
}

// Logout does nothing.
func (s *session) Logout() error { return nil }

// read parses a mail with a text and an HTML part.
func read(raw []byte) (m Mail, err error) {
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return m, err
	}
	m.Header = message.Header
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject")); err != nil {
		return m, err
	}
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		return m, errors.Join(errors.New("the mail is not multipart/alternative: "+kind), err)
	}
	parts := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, err
		}
		if coding := part.Header.Get("Content-Transfer-Encoding"); coding != "quoted-printable" {
			return m, errors.New("a part has the encoding " + coding)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			return m, err
		}
		text := strings.ReplaceAll(string(body), "\r\n", "\n")
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			m.HTML = text
		} else {
			m.Text = text
		}
	}
	if m.Text == "" || m.HTML == "" {
		return m, errors.New("a part is missing")
	}
	return m, nil
}
