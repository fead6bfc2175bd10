package mail

import (
	"context"
	"net"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// testEnv is a database with a clock, a mail provider, and nodes.
type testEnv struct {
	t      *testing.T
	db     *store.DB
	clock  *storetest.Clock
	server *fakemail.Server
}

// each runs a test with an empty outbox on each database.
func each(t *testing.T, test func(t *testing.T, env *testEnv)) {
	t.Helper()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		test(t, &testEnv{t: t, db: db, clock: c, server: fakemail.Start(t, fakemail.Options{})})
	})
}

// serverAt returns the settings of a server without encryption.
func serverAt(t *testing.T, address string) SMTPServer {
	t.Helper()
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return SMTPServer{Host: host, Port: port, Security: Plain}
}

// node registers a node and returns its Mailer.
func (env *testEnv) node(epoch string) *Mailer {
	env.t.Helper()
	self, err := node.Begin(context.Background(), node.Options{DB: env.db}, epoch)
	if err != nil {
		env.t.Fatal(err)
	}
	return newTestMailer(env.t, Options{DB: env.db, Node: self, Server: serverAt(env.t, env.server.Address)})
}

func newTestMailer(t *testing.T, o Options) *Mailer {
	t.Helper()
	o.From, o.PublicURL = "shop@example.com", "https://api.example.com"
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// kill declares a node dead.
func (env *testEnv) kill(epoch string) {
	env.t.Helper()
	if dead, err := node.Fence(context.Background(), env.db, epoch, 0); err != nil || !dead {
		env.t.Fatalf("Fence(%s) = %v, %v", epoch, dead, err)
	}
}

// write commits letters.
func (env *testEnv) write(m *Mailer, letters ...Letter) {
	env.t.Helper()
	storetest.Update(env.t, env.db, func(tx *store.Tx) error {
		for _, l := range letters {
			if err := m.EnqueueTx(tx, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// letter returns an invitation.
func letter(cause string) Letter {
	return Letter{Kind: Invitation, Subject: "user_1", Cause: cause, To: cause + "@example.com", Link: "https://api.example.com/x",
		Values: map[string]string{"expires": "2026-11-28 12:00 UTC"}}
}

// send sends the due mails.
func send(t *testing.T, m *Mailer) {
	t.Helper()
	if err := m.SendWaiting(context.Background(), context.Background()); err != nil {
		t.Fatal(err)
	}
}

// entries returns the outbox, newest first.
func (env *testEnv) entries() (list []OutboxMail) {
	env.t.Helper()
	storetest.View(env.t, env.db, func(tx *store.Tx) (err error) {
		list, _, err = ListTx(tx, OutboxFilter{Limit: 1000})
		return err
	})
	return list
}

// only returns the only mail of the outbox.
func (env *testEnv) only() OutboxMail {
	env.t.Helper()
	list := env.entries()
	if len(list) != 1 {
		env.t.Fatalf("the outbox has %d mails, want 1: %+v", len(list), list)
	}
	return list[0]
}
