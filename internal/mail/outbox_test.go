package mail

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestSend checks a mail from its cause to the server: its parts, its headers, its state, and that the
// same cause has no second mail.
func TestSend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		m := env.node("a")
		l := letter("ann")
		l.Locale = Chinese
		env.write(m, l, l)
		env.write(m, l)
		if e := env.only(); e.State != "waiting" || e.NextMS == 0 || e.To != "ann@example.com" {
			t.Errorf("before the attempt: got %+v, want waiting", e)
		}
		send(t, m)
		send(t, m)
		e, mails := env.only(), env.server.Mails()
		if e.State != "sent" || e.Attempts != 1 || e.SentMS == 0 || len(mails) != 1 {
			t.Fatalf("got %+v and %d mails, want one, sent", e, len(mails))
		}
		got := mails[0]
		if got.From != "shop@example.com" || got.To != "ann@example.com" || got.Subject != "邀请您使用 api.example.com" {
			t.Errorf("got a mail from %q to %q with the subject %q", got.From, got.To, got.Subject)
		}
		if got.Link() != l.Link || !strings.Contains(got.HTML, `href="`+l.Link+`"`) {
			t.Errorf("the mail does not have the link %s:\n%s\n%s", l.Link, got.Text, got.HTML)
		}
		for name, want := range map[string]string{"Auto-Submitted": "auto-generated", "Message-Id": "<" + e.ID + "@example.com>",
			"From": `"api.example.com" <shop@example.com>`, "Date": "Sat, 21 Nov 2026 12:00:00 +0000"} {
			if got.Header.Get(name) != want {
				t.Errorf("header %s is %q, want %q", name, got.Header.Get(name), want)
			}
		}
	})
}

// TestNoHeaderInjection checks that line breaks in the name of the shop, in an account's name, in other values and
// in an address add neither a header nor a recipient.
func TestNoHeaderInjection(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		const inject = "\r\nBcc: evil@example.com\r\n\r\n<b>hello"
		opts := env.node("a").opts
		opts.Service, opts.Contact = "Shop"+inject, "Desk"+inject
		m := newTestMailer(t, opts)
		for _, l := range []Letter{
			{Kind: AutomaticPaused, AccountName: "Acme" + inject, Link: "https://api.example.com/x",
				Values: map[string]string{"balance": "1"}},
			{Kind: LimitNear, Values: map[string]string{"key": "backend" + inject, "limit": "1", "spent": "1"}, Link: "https://api.example.com/x"},
			{Kind: IdentityAdded, Values: map[string]string{"provider": "Corp" + inject, "time": "x", "address": "x"},
				Link: "https://api.example.com/x"},
		} {
			l.Cause, l.To = string(l.Kind), "ann@example.com"
			env.write(m, l)
		}
		send(t, m)
		mails := env.server.Mails()
		if len(mails) != 3 {
			t.Fatalf("got %d mails, want 3: %+v", len(mails), env.entries())
		}
		for _, got := range mails {
			if got.Header.Get("Bcc") != "" || got.To != "ann@example.com" || strings.ContainsAny(got.Subject, "\r\n") ||
				strings.Contains(got.HTML, "<b>hello") || strings.Contains(got.Text, "\nBcc:") {
				t.Errorf("a value has added a header, a recipient or a line: %+v", got)
			}
		}
		for _, to := range []string{"ann@example.com\r\nBcc: evil@example.com", "ann@example.com, evil@example.com", "ann@example.com\x00"} {
			if err := env.db.Update(t.Context(), func(tx *store.Tx) error {
				return m.EnqueueTx(tx, Letter{Kind: Test, Cause: to, To: to})
			}); err == nil {
				t.Errorf("a mail to %q was written", to)
			}
		}
	})
}

// TestOff checks that without a server nothing is written and nothing runs.
func TestOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		off, err := New(Options{DB: env.db})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*Mailer{off, nil} {
			env.write(m, letter("ann"))
			m.Run(t.Context())
			if _, err := m.Test(t.Context(), "ann@example.com"); err == nil || !strings.Contains(err.Error(), "smtp_server") {
				t.Errorf("Test without a server: got %v, want an error that names smtp_server", err)
			}
		}
		if list := env.entries(); len(list) != 0 {
			t.Errorf("the outbox has %+v, want nothing", list)
		}
	})
}

// TestFaults checks the state after an attempt with each fault, and after the next one.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault        fakemail.Fault
		state, words string
		taken        int    // mails taken by the first attempt
		later        string // state after the second attempt
		all          int    // mails taken in the end
	}{
		"refused for good":              {fakemail.Refuse, "given_up", "550", 0, "given_up", 0},
		"sender refused":                {fakemail.RefuseSender, "failed", "553", 0, "sent", 1},
		"deferred":                      {fakemail.Defer, "failed", "451", 0, "sent", 1},
		"busy":                          {fakemail.TooManyMessages, "failed", "421", 0, "sent", 1},
		"dropped":                       {fakemail.Drop, "failed", "EOF", 0, "sent", 1},
		"taken, dropped before the 250": {fakemail.TakeThenDrop, "failed", "EOF", 1, "sent", 2},
		"dropped after the 250":         {fakemail.AnswerThenDrop, "sent", "", 1, "sent", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, env *testEnv) {
				m := env.node("a")
				env.server.Plan(c.fault)
				env.write(m, letter("ann"))
				send(t, m)
				e := env.only()
				if e.State != c.state || !strings.Contains(e.Error, c.words) || strings.Contains(e.Error, "affected") {
					t.Errorf("after the fault: got %+v, want state %s and %q in the error", e, c.state, c.words)
				}
				if n := len(env.server.Mails()); n != c.taken {
					t.Errorf("the server took %d mails, want %d", n, c.taken)
				}
				send(t, m) // not due yet
				if n := env.server.Tries(); n != 1 {
					t.Errorf("%d attempts before the pause has ended, want 1", n)
				}
				env.clock.Advance(time.Minute)
				send(t, m)
				if e := env.only(); e.State != c.later {
					t.Errorf("after a minute: got %+v, want state %s", e, c.later)
				}
				mails := env.server.Mails()
				if len(mails) != c.all {
					t.Fatalf("the server took %d mails, want %d", len(mails), c.all)
				}
				if len(mails) == 2 && mails[0].Header.Get("Message-Id") != mails[1].Header.Get("Message-Id") {
					t.Errorf("the repeated mail has the Message-ID %q, want %q", mails[1].Header.Get("Message-Id"), mails[0].Header.Get("Message-Id"))
				}
			})
		})
	}
}

// TestBrokenConnection checks that the other mails of a batch are sent over another connection.
func TestBrokenConnection(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		m := env.node("a")
		env.server.Plan(fakemail.None, fakemail.Drop, fakemail.AnswerThenDrop, fakemail.Refuse)
		for i := range 6 {
			env.write(m, letter(fmt.Sprintf("user%d", i)))
		}
		send(t, m)
		states := map[string]int{}
		for _, e := range env.entries() {
			states[e.State]++
		}
		if states["sent"] != 4 || states["failed"] != 1 || states["given_up"] != 1 {
			t.Errorf("states %v, want 4 sent, 1 failed, 1 given up", states)
		}
	})
}

// TestGivesUpAfterADay checks the pauses and the end of the attempts while the server is away.
func TestGivesUpAfterADay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		m := env.node("a")
		env.server.Stop()
		env.write(m, letter("ann"))
		for range 24 * 60 {
			send(t, m)
			env.clock.Advance(time.Minute)
		}
		e := env.only()
		if e.State != "given_up" || e.Attempts != 28 || !strings.Contains(e.Error, "refused") {
			t.Errorf("after a day: got %+v, want given up after 28 attempts, connection refused", e)
		}
		env.clock.Advance(31 * 24 * time.Hour)
		if err := m.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list := env.entries(); len(list) != 0 {
			t.Errorf("after the retention: got %+v, want nothing", list)
		}
	})
}

// TestNodesSendOnce checks that several nodes send each of many mails once.
func TestNodesSendOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		nodes := []*Mailer{env.node("a"), env.node("b"), env.node("c")}
		const mails = 100
		for i := range mails {
			env.write(nodes[0], letter(fmt.Sprintf("user%d", i)))
		}
		var wg sync.WaitGroup
		for _, m := range nodes {
			wg.Go(func() { send(t, m) })
		}
		wg.Wait()
		seen := map[string]int{}
		for _, got := range env.server.Mails() {
			seen[got.To]++
		}
		for to, n := range seen {
			if n != 1 {
				t.Errorf("%s got %d mails, want 1", to, n)
			}
		}
		if len(seen) != mails {
			t.Errorf("%d readers got a mail, want %d", len(seen), mails)
		}
	})
}

// TestDeadNode checks that another node takes over the claims of a dead node, at once if the node is
// known to be dead, and that the dead node sends nothing afterwards.
func TestDeadNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		a, b := env.node("a"), env.node("b")
		env.write(a, letter("ann"))
		batch, err := a.claim(t.Context())
		if err != nil || len(batch) != 1 {
			t.Fatalf("claimed %d mails, %v; want 1", len(batch), err)
		}
		send(t, b)
		if n := env.server.Tries(); n != 0 {
			t.Errorf("%d attempts while the claiming node lives, want 0", n)
		}
		env.kill("a")
		send(t, b)
		if n := len(env.server.Mails()); n != 1 {
			t.Errorf("%d mails after the takeover, want 1", n)
		}
		if err := a.sendBatch(context.Background(), context.Background(), batch); err != nil {
			t.Fatal(err)
		}
		env.write(b, letter("bob"))
		send(t, a)
		if n := len(env.server.Mails()); n != 1 {
			t.Errorf("the dead node sent a mail: %d mails, want 1", n)
		}
	})
}

// TestFrozenNode checks that a node that was frozen after its claim leaves the mail to others.
func TestFrozenNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		a, b := env.node("a"), env.node("b")
		env.write(a, letter("ann"))
		batch, err := a.claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		env.clock.Advance(leaseTime)
		if err := a.sendBatch(context.Background(), context.Background(), batch); err != nil {
			t.Fatal(err)
		}
		if n := env.server.Tries(); n != 0 {
			t.Errorf("the frozen node made %d attempts, want 0", n)
		}
		send(t, b)
		if e := env.only(); e.State != "sent" || e.Attempts != 1 {
			t.Errorf("got %+v, want sent by the other node", e)
		}
	})
}

// TestStop checks that a stop between claim and attempt frees the mails without an attempt.
func TestStop(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		m := env.node("a")
		env.write(m, letter("ann"))
		batch, err := m.claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stopped, stop := context.WithCancel(context.Background())
		stop()
		if err := m.sendBatch(stopped, stopped, batch); err != nil {
			t.Fatal(err)
		}
		if e := env.only(); e.State != "waiting" || e.Attempts != 0 {
			t.Errorf("after the stop: got %+v, want waiting without an attempt", e)
		}
		send(t, m)
		if e := env.only(); e.State != "sent" {
			t.Errorf("after the next start: got %+v, want sent", e)
		}
	})
}

// bodyOf returns the stored text of the only mail.
func (env *testEnv) bodyOf() (text string) {
	env.t.Helper()
	storetest.View(env.t, env.db, func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT body_text || body_html FROM mail_outbox`).Scan(&text)
	})
	return text
}

// TestLinkThatWorksOnce checks that the text with such a link is deleted at the mail's end, that the
// mail is not sent after the link has expired, and that it cannot be sent again.
func TestLinkThatWorksOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait  time.Duration
		state string
		mails int
	}{
		"in time":  {0, "sent", 1},
		"too late": {time.Hour, "given_up", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, env *testEnv) {
				m := env.node("a")
				l := letter("ann")
				l.ExpiresMS = env.clock.Now().Add(time.Hour).UnixMilli()
				env.write(m, l)
				if !strings.Contains(env.bodyOf(), l.Link) {
					t.Error("the waiting mail does not have its link")
				}
				env.clock.Advance(c.wait)
				send(t, m)
				e := env.only()
				if e.State != c.state || len(env.server.Mails()) != c.mails {
					t.Errorf("got %+v and %d mails, want %s and %d", e, len(env.server.Mails()), c.state, c.mails)
				}
				if text := env.bodyOf(); text != "" {
					t.Errorf("the outbox still has the text %q", text)
				}
				if _, err := m.Resend(t.Context(), e.ID); err == nil || !strings.Contains(err.Error(), "new link") {
					t.Errorf("Resend: got %v, want an error that asks for a new link", err)
				}
			})
		})
	}
}

// TestResend checks resends of a sent mail and of a given-up mail.
func TestResend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		m := env.node("a")
		env.server.Plan(fakemail.Refuse, fakemail.Defer)
		env.write(m, letter("ann"))
		send(t, m)
		mail := env.only().ID
		if e, err := m.Resend(t.Context(), mail); err != nil || e.State != "given_up" || !strings.Contains(e.Error, "451") {
			t.Errorf("a resend that failed: got %+v, %v; want given up", e, err)
		}
		for i := range 2 {
			e, err := m.Resend(t.Context(), mail)
			if err != nil || e.State != "sent" || e.Error != "" {
				t.Errorf("resend %d: got %+v, %v; want sent", i, e, err)
			}
		}
		mails := env.server.Mails()
		if len(mails) != 2 || mails[0].Header.Get("Message-Id") == mails[1].Header.Get("Message-Id") {
			t.Errorf("got %d mails, want 2 with different Message-IDs", len(mails))
		}
		if _, err := m.Resend(t.Context(), "mail_unknown"); err == nil || !strings.Contains(err.Error(), "no such mail") {
			t.Errorf("an unknown mail: got %v", err)
		}
		env.clock.Advance(time.Millisecond)
		env.write(m, letter("bob"))
		if _, err := m.claim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Resend(t.Context(), env.entries()[0].ID); err == nil || !strings.Contains(err.Error(), "at this moment") {
			t.Errorf("a mail that is being sent: got %v", err)
		}
	})
}

// TestTestMail checks that a test mail is attempted once, with the server's words as its result.
func TestTestMail(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		m := env.node("a")
		m.opts.Node = nil // as in a command
		env.server.Plan(fakemail.Defer)
		if e, err := m.Test(t.Context(), "ann@example.com"); err != nil || e.State != "given_up" ||
			!strings.Contains(e.Error, "Try again later") {
			t.Errorf("a deferred test: got %+v, %v; want given up with the server's words", e, err)
		}
		if e, err := m.Test(t.Context(), "ann@example.com"); err != nil || e.State != "sent" || len(env.server.Mails()) != 1 {
			t.Errorf("a second test: got %+v, %v; want sent", e, err)
		}
		for _, to := range []string{"", "ann", "Ann <ann@example.com>", "ann@example.com\r\nBcc: bob@example.com", "a@b.com, c@d.com"} {
			if _, err := m.Test(t.Context(), to); err == nil {
				t.Errorf("Test(%q): got no error", to)
			}
		}
	})
}

// TestListTx checks the filters and the pages of the outbox.
func TestListTx(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, env *testEnv) {
		m := env.node("a")
		env.server.Plan(fakemail.Refuse)
		for i := range 3 {
			l := letter(fmt.Sprintf("user%d", i))
			l.Account = fmt.Sprintf("acct_%d", i%2)
			env.write(m, l)
			env.clock.Advance(time.Millisecond)
		}
		send(t, m)
		storetest.View(t, env.db, func(tx *store.Tx) error {
			for _, c := range []struct {
				f    OutboxFilter
				want string
				more bool
			}{
				{OutboxFilter{Limit: 2}, "user2 user1", true},
				{OutboxFilter{Limit: 3}, "user2 user1 user0", false},
				{OutboxFilter{Limit: 9, State: "sent"}, "user2 user1", false},
				{OutboxFilter{Limit: 9, State: "given_up"}, "user0", false},
				{OutboxFilter{Limit: 9, Account: "acct_0", State: "sent"}, "user2", false},
			} {
				list, more, err := ListTx(tx, c.f)
				if err != nil {
					return err
				}
				var got []string
				for _, e := range list {
					name, _, _ := strings.Cut(e.To, "@")
					got = append(got, name)
				}
				if strings.Join(got, " ") != c.want || more != c.more {
					t.Errorf("ListTx(%+v) = %v, %v; want %s, %v", c.f, got, more, c.want, c.more)
				}
				if len(list) > 1 {
					next, _, err := ListTx(tx, OutboxFilter{Limit: 1, After: list[0].ID})
					if err != nil || len(next) != 1 {
						t.Errorf("the next page has %v, %v; want one mail", next, err)
					}
				}
			}
			if _, _, err := ListTx(tx, OutboxFilter{Limit: 1, State: "lost"}); err == nil {
				t.Error("an unknown state: got no error")
			}
			return nil
		})
	})
}
