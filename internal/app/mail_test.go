package app

import (
	"strings"
	"testing"
)

// TestMailSettings checks which settings of mail fit together, and that each error names the setting to
// change and says how.
func TestMailSettings(t *testing.T) {
	t.Parallel()
	const complete = "smtp_server: smtp.example.com:587\nmail_from: shop@example.com\npublic_url: https://api.example.com\n"
	checkSettings(t, map[string]settingsCase{
		"off":                {"", ""},
		"complete":           {complete, ""},
		"with a user":        {complete + "smtp_user: a\nsmtp_password: b\nsmtp_security: tls\nservice_name: 商店", ""},
		"on this machine":    {"smtp_server: 127.0.0.1:25\nsmtp_security: none\nmail_from: a@example.com\npublic_url: http://a.example.com", ""},
		"no server":          {"mail_from: shop@example.com", "mail_from: needs smtp_server"},
		"password alone":     {"smtp_password: b", "smtp_password: needs smtp_server"},
		"no host":            {strings.Replace(complete, "smtp.example.com", "", 1), "smtp_server: must name a host and a port"},
		"no port":            {strings.Replace(complete, ":587", "", 1), "smtp_server (tollgate.yaml:1:1): must be HOST:PORT"},
		"no sender":          {"smtp_server: smtp.example.com:587\npublic_url: https://api.example.com", "smtp_server: needs mail_from"},
		"no public address":  {"smtp_server: smtp.example.com:587\nmail_from: a@example.com", "smtp_server: needs public_url"},
		"a named sender":     {complete + "mail_from: Shop <shop@example.com>", "already defined"},
		"an invalid sender":  {"mail_from: Shop <shop@example.com>", "must be a plain address like name@example.com"},
		"unencrypted":        {complete + "smtp_security: none", "smtp_security: none is only for an SMTP server on this machine"},
		"unknown encryption": {complete + "smtp_security: ssl", "must be one of starttls, tls, none"},
		"open password": {"smtp_server: localhost:25\nsmtp_security: none\nmail_from: a@example.com\npublic_url: http://a.example.com\n" +
			"smtp_user: a\nsmtp_password: b", "smtp_user: needs smtp_security starttls or tls"},
		"no password":         {complete + "smtp_user: a", "smtp_user: needs smtp_password or smtp_password_file"},
		"no user":             {complete + "smtp_password: b", "smtp_password: needs smtp_user"},
		"a name with a break": {complete + `service_name: "a\nb"`, "must be visible characters and spaces"},
	}, checkMail)
}

// settingsCase is a settings file and a part of the error that it causes, or "" for none.
type settingsCase struct{ file, want string }

// checkSettings reads each file and passes its settings to check.
func checkSettings(t *testing.T, cases map[string]settingsCase, check func(*Settings) error) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := settingsFrom(c.file, nil, nil)
			if err == nil {
				err = check(s)
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
