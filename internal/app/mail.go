package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"

	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/warning"
)

// readSecurity reads the encryption of the SMTP connection.
func readSecurity(text string) (mail.Security, error) {
	word, err := oneOf(string(mail.StartTLS), string(mail.TLS), string(mail.Plain))(text)
	return mail.Security(word), err
}

// longestName bounds the name of the service in bytes, because mail headers contain the name.
const longestName = 80

// readName reads the name of the service.
func readName(text string) (string, error) {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return "", errors.New("must be visible characters and spaces")
		}
	}
	if len(text) > longestName {
		return "", fmt.Errorf("must have at most %d bytes", longestName)
	}
	return text, nil
}

// maxAlertAddresses bounds the addresses that get alerts.
const maxAlertAddresses = 20

// readAddresses reads the addresses that get alerts.
func readAddresses(text string) ([]string, error) {
	list := splitList(text)
	if len(list) > maxAlertAddresses {
		return nil, fmt.Errorf("must have at most %d addresses", maxAlertAddresses)
	}
	for _, address := range list {
		if _, err := mail.ParseAddress(address); err != nil {
			return nil, fmt.Errorf("%q %w", address, err)
		}
	}
	return list, nil
}

// readUSD reads an amount that is not negative.
func readUSD(text string) (money.Amount, error) {
	amount, err := money.Parse(text)
	if err != nil || amount < 0 {
		return 0, errors.New("must be an amount in US dollars, such as 5 or 2.50")
	}
	return amount, nil
}

// checkMail checks the settings of mail together.
func checkMail(s *Settings) error {
	wrong := func(key, format string, args ...any) error { return &SettingError{key, fmt.Errorf(format, args...)} }
	if s.SMTPServer == "" {
		for _, set := range [][2]string{{"smtp_user", s.SMTPUser}, {"smtp_password", s.SMTPPassword}, {"mail_from", s.MailFrom},
			{"alert_mail", strings.Join(s.AlertMail, ",")}} {
			if set[1] != "" {
				return wrong(set[0], "needs smtp_server: set it to HOST:PORT of your mail provider, or remove %s", set[0])
			}
		}
		return nil
	}
	host, port, _ := net.SplitHostPort(s.SMTPServer) // readListen has checked it
	switch {
	case host == "" || port == "0":
		return wrong("smtp_server", "must name a host and a port, such as smtp.example.com:587")
	case s.MailFrom == "":
		return wrong("smtp_server", "needs mail_from: set it to the address that your mails come from")
	case s.PublicURL == "":
		return wrong("smtp_server", "needs public_url: set it to the address of this service, because links in mails begin with it")
	case s.SMTPSecurity == mail.Plain && !isLoopback(s.SMTPServer):
		return wrong("smtp_security", "none is only for an SMTP server on this machine: "+
			"use starttls (usually port 587) or tls (usually port 465)")
	case s.SMTPSecurity == mail.Plain && s.SMTPUser != "":
		return wrong("smtp_user", "needs smtp_security starttls or tls, because none would send the password unencrypted")
	case s.SMTPUser == "" && s.SMTPPassword != "":
		return wrong("smtp_password", "needs smtp_user")
	case s.SMTPUser != "" && s.SMTPPassword == "":
		return wrong("smtp_user", "needs smtp_password or smtp_password_file")
	}
	return nil
}

// newMailer returns the mailer of a process. self is nil in a command, which sends no mails.
func (s *Settings) newMailer(db *store.DB, self *node.Node, options mail.Options) (*mail.Mailer, error) {
	options.DB, options.Node = db, self
	options.From, options.Service, options.PublicURL = s.MailFrom, s.ServiceName, s.PublicURL
	options.Contact, options.Color = strings.TrimPrefix(s.shop.contact, "mailto:"), string(s.shop.color.OnWhite())
	if s.SMTPServer != "" {
		host, text, _ := net.SplitHostPort(s.SMTPServer) // checkMail has checked both
		port, _ := strconv.Atoi(text)
		options.Server = mail.SMTPServer{Host: host, Port: port, Security: s.SMTPSecurity, User: s.SMTPUser, Password: s.SMTPPassword}
	}
	mailer, err := mail.New(options)
	if err != nil {
		return nil, fmt.Errorf("prepare mails: %w", err)
	}
	return mailer, nil
}

func (r *rooms) startMail(context.Context) (err error) {
	if r.mails, err = r.settings.newMailer(r.db, r.node, mail.Options{Registry: r.metrics.Registry(), Log: r.log}); err != nil {
		return err
	}
	r.life.loop("mails", r.mails.Run)
	warnings := warning.New(warning.Options{DB: r.db, Mails: r.mails, PublicURL: r.settings.PublicURL, LowBalance: r.settings.LowBalance,
		Log: r.log})
	r.life.loop("warnings", warnings.Run)
	return nil
}
