// Package mail owns the mails to users and operators: their texts, the outbox, and the exchange with
// the SMTP server.
//
// Invariants:
//   - A mail is a row of the outbox, written in the transaction of its cause, with its final text.
//     Its kind, subject and cause are unique in the outbox, so a cause has one mail.
//   - An attempt runs under a lease that names the node's epoch and expires, so other nodes take over
//     the mails of a dead node. After the server's acceptance is recorded, only an operator can send
//     the mail again.
//   - A crash, or a broken connection, between the server's answer and its record repeats the mail with
//     the same Message-ID.
//   - The text of a mail with a single-use link is deleted when the mail is sent or given up.
//   - Addresses in mails begin with the setting public_url, never with a request's Host.
package mail

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tollgate/internal/loop"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// Options configure the mails. DB is required. The other fields are required if Server is set, unless their
// comment says otherwise.
type Options struct {
	DB *store.DB
	// Server takes the mails. If its Host is empty, mail is off: EnqueueTx and Run do nothing.
	Server SMTPServer
	// From is the sender's address.
	From string
	// Service is the name of this service in mails. If empty, it is the host of PublicURL.
	Service string
	// Contact is where readers get help. It may be empty.
	Contact string
	// Color is the color of buttons, such as #1f5fbf. If empty, it is a blue.
	Color string
	// PublicURL is the base address of this service, for links.
	PublicURL string
	// Node is this node; only Run needs it. Leases of dead epochs are taken over.
	Node *node.Node
	// Registry gets the metrics. It may be nil.
	Registry prometheus.Registerer
	// Log gets the operational errors. Nil discards them.
	Log *slog.Logger
}

// Mailer writes and sends mails. It is safe for concurrent use. With a nil Mailer, mail is off.
type Mailer struct {
	opts    Options
	texts   texts
	metrics metrics
	failed  atomic.Bool // the last attempt to reach the server failed
}

// retention is how long mails stay in the outbox.
const retention = 30 * 24 * time.Hour

// New returns a Mailer; call Run to send.
func New(o Options) (*Mailer, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Mailer{opts: o, metrics: newMetrics(o.Registry)}
	if !m.On() {
		return m, nil
	}
	if m.opts.Service == "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil {
			return nil, fmt.Errorf("read the public address: %w", err)
		}
		m.opts.Service = u.Hostname()
	}
	var err error
	m.texts, err = readTexts()
	return m, err
}

// On reports whether a server is set. If On is false, callers hide the features that need mail.
func (m *Mailer) On() bool { return m != nil && m.opts.Server.Host != "" }

// Periods of Run.
const (
	pollEvery  = 2 * time.Second // the longest wait of a new mail
	sweepEvery = 10 * time.Minute
	stopGrace  = 3 * time.Second // for a running attempt when Run ends
)

// Run sends waiting mails, and deletes mails past the retention, until ctx ends. Then the running
// attempt gets stopGrace to end. If mail is off, Run returns at once.
func (m *Mailer) Run(ctx context.Context) {
	if !m.On() {
		return
	}
	loop.Run(ctx,
		loop.Loop{Room: "mail", Does: "read or write the outbox", Log: m.opts.Log, Period: pollEvery,
			Step: func(ctx context.Context) error {
				work, cancel := loop.Linger(ctx, stopGrace)
				defer cancel()
				return m.SendWaiting(ctx, work)
			}},
		loop.Loop{Room: "mail", Does: "count the waiting mails", Log: m.opts.Log, Period: measureEvery, Step: m.Measure},
		loop.Loop{Room: "mail", Does: "delete old mails", Log: m.opts.Log, Period: sweepEvery, Step: m.Forget},
	)
}

// Forget deletes mails past the retention. It is one step of Run.
func (m *Mailer) Forget(ctx context.Context) error {
	return m.opts.DB.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(forgetText, now-retention.Milliseconds(), stateSent); err != nil {
			return fmt.Errorf("delete old mails: %w", err)
		}
		return nil
	})
}
