package main

import (
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/store/storetest"
)

// TestMailCommands checks the test mail with good and bad settings, the list, and a resend.
func TestMailCommands(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		server := fakemail.Start(t, fakemail.Options{})
		dir := t.TempDir()
		db := "--database=" + url
		on := []string{db, "--smtp-server=" + server.Address, "--smtp-security=none", "--mail-from=shop@example.com",
			"--public-url=https://api.example.com"}
		if got := tollgate(t, dir, "mail", "test", "ann@example.com", db); got.code != 1 || !strings.Contains(got.errors, "smtp_server") {
			t.Errorf("mail test without a server ended with %+v, want exit 1 and the setting", got)
		}
		if got := tollgate(t, dir, append([]string{"mail", "test", "ann"}, on...)...); got.code != 2 || !strings.Contains(got.errors, "address") {
			t.Errorf("mail test of an invalid address ended with %+v, want exit 2", got)
		}
		server.Plan(fakemail.Refuse)
		if got := must(t, dir, append([]string{"mail", "test", "nobody@example.com"}, on...)...); got["state"] != "given_up" ||
			!strings.Contains(got["error"].(string), "No such user") {
			t.Errorf("mail test of a refused address printed %v, want given_up and the server's words", got)
		}
		got := must(t, dir, append([]string{"mail", "test", "ann@example.com"}, on...)...)
		if got["state"] != "sent" || len(server.Mails()) != 1 {
			t.Errorf("mail test printed %v, want sent", got)
		}
		if list, _ := must(t, dir, "mail", "list", "--state", "sent", db)["data"].([]any); len(list) != 1 {
			t.Errorf("mail list printed %v, want one mail", list)
		}
		again := must(t, dir, append([]string{"mail", "resend", got["id"].(string)}, on...)...)
		if again["state"] != "sent" || len(server.Mails()) != 2 {
			t.Errorf("mail resend printed %v, want sent", again)
		}
	})
}
