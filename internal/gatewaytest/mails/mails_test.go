// Package mails owns tests of mails with real processes and a real SMTP exchange.
//
// Invariants of the tests: each cause reaches its reader exactly once, whatever node dies; a repeated
// mail has the same Message-ID.
package mails

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

const publicURL = "https://api.example.com"

// settings returns the settings of a gateway that sends mails to a server.
func settings(server *fakemail.Server) map[string]string {
	return map[string]string{"smtp_server": server.Address, "smtp_user": fakemail.User, "smtp_password": fakemail.Password,
		"mail_from": "shop@example.com", "public_url": publicURL, "service_name": "Shop", "SSL_CERT_FILE": server.CertPEM}
}

// invite adds a user without a password and returns the user's link.
func invite(n *scene.Node, account, email string) string {
	var out struct{ Link string }
	n.Admin("POST", "/accounts/"+account+"/users", map[string]any{"email": email}, &out)
	return out.Link
}

// entry is a mail in the operator API.
type entry struct {
	ID, To, State string
	Attempts      int
}

func outbox(n *scene.Node) []entry {
	var out struct{ Data []entry }
	n.Admin("GET", "/mails?limit=200", nil, &out)
	return out.Data
}

// sent reports whether the outbox has n mails, all sent.
func sent(n *scene.Node, count int) bool {
	list := outbox(n)
	for _, e := range list {
		if e.State != "sent" {
			return false
		}
	}
	return len(list) == count
}

// TestKill kills the process with SIGKILL after the cause of a mail has been committed, and again after
// the server took the mail but before its answer. The first mail arrives once; the second one arrives
// again with the same Message-ID.
func TestKill(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		server := fakemail.Start(t, fakemail.Options{StartTLS: true, Auth: true})
		n := scene.NewNode(t, binary, database, settings(server))
		account, _ := n.Account(1, nil)
		link := invite(n, account, "ann@example.com")
		n.Kill()
		n.Restart()
		scene.Eventually(t, "the mail is sent after the kill", func() bool { return sent(n, 1) })
		mails := server.Mails()
		if len(mails) == 2 && mails[0].Header.Get("Message-Id") == mails[1].Header.Get("Message-Id") {
			mails = mails[1:] // the kill was between the server's answer and its record
		}
		if len(mails) != 1 || mails[0].Link() != link || mails[0].To != "ann@example.com" || !strings.HasPrefix(link, publicURL+"/") {
			t.Fatalf("the server has %+v, want one mail to ann@example.com with the link %s", mails, link)
		}
		before := len(server.Mails())
		server.Plan(fakemail.TakeThenHang)
		invite(n, account, "bob@example.com")
		scene.Eventually(t, "the server takes the mail", func() bool { return len(server.Mails()) == before+1 })
		n.Kill()
		n.Restart()
		scene.Eventually(t, "the mail is sent again", func() bool { return sent(n, 2) })
		mails = server.Mails()[before:]
		if len(mails) != 2 || mails[0].Header.Get("Message-Id") != mails[1].Header.Get("Message-Id") {
			t.Errorf("the server has %d mails to bob@example.com, want 2 with the same Message-ID", len(mails))
		}
	})
}

// TestForgottenPassword sets a new password with the link of a mail, as a browser would, and signs in
// with it.
func TestForgottenPassword(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		server := fakemail.Start(t, fakemail.Options{TLS: true, Auth: true})
		more := settings(server)
		more["smtp_security"] = "tls"
		n := scene.NewNode(t, binary, database, more)
		account, _ := n.Account(1, nil)
		n.Admin("POST", "/accounts/"+account+"/users", map[string]any{"email": "ann@example.com", "password": "the old password"}, nil)
		client := &http.Client{Transport: n.Client.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		post := func(path string, want int, fields ...string) {
			t.Helper()
			form := url.Values{}
			for i := 0; i < len(fields); i += 2 {
				form.Set(fields[i], fields[i+1])
			}
			resp, err := client.PostForm(n.URL+"/console/"+path, form)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("POST %s: got status %d, want %d", path, resp.StatusCode, want)
			}
		}
		post("forgot", http.StatusOK, "email", "ann@example.com")
		scene.Eventually(t, "the mail is sent", func() bool { return sent(n, 1) })
		link := server.Mails()[0].Link()
		_, token, _ := strings.Cut(link, "#")
		if link != publicURL+"/console/link#"+token || token == "" {
			t.Fatalf("the link is %s, want one at %s", link, publicURL)
		}
		post("link/password", http.StatusSeeOther, "email", "ann@example.com", "link", token, "password", "the new password")
		post("sign-in", http.StatusUnprocessableEntity, "email", "ann@example.com", "password", "the old password", "next", "")
		post("sign-in", http.StatusSeeOther, "email", "ann@example.com", "password", "the new password", "next", "")
		scene.Eventually(t, "the sign-in is mailed", func() bool { return sent(n, 2) })
		if m := server.Mails()[1]; m.Subject != "A sign-in with a new browser at Shop" {
			t.Errorf("the second mail is %q, want the one about the sign-in", m.Subject)
		}
	})
}

// TestTwoNodes checks that two processes send each of many mails once, also if one is killed.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	database := storetest.PostgreSQL(t) // one process serves a SQLite file
	server := fakemail.Start(t, fakemail.Options{StartTLS: true, Auth: true})
	a := scene.NewNode(t, binary, database, settings(server))
	b := a.Second()
	account, _ := a.Account(1, nil)
	const count = 40
	links := map[string]string{}
	for i := range count {
		if i == count/2 {
			b.Kill()
		}
		email := fmt.Sprintf("user%d@example.com", i)
		links[email] = invite(a, account, email)
	}
	scene.Eventually(t, "all mails are sent", func() bool { return sent(a, count) })
	ids, readers := map[string]string{}, map[string]int{}
	for _, m := range server.Mails() {
		readers[m.To]++
		id := m.Header.Get("Message-Id")
		if ids[m.To] != "" && ids[m.To] != id { // the killed node may have sent one mail that it did not record
			t.Errorf("%s got two different mails", m.To)
		}
		ids[m.To] = id
		if m.Link() != links[m.To] {
			t.Errorf("%s got the link %q, want %q", m.To, m.Link(), links[m.To])
		}
	}
	repeated := 0
	for _, n := range readers {
		repeated += n - 1
	}
	if len(readers) != count || repeated > 1 {
		t.Errorf("%d readers got mails and %d mails came twice, want %d and at most one", len(readers), repeated, count)
	}
}
