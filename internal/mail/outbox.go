package mail

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Bounds of a claim. An attempt begins only if its lease lasts for another exchangeTime, so the lease
// outlives the attempt.
const (
	maxClaims    = 20
	exchangeTime = timeout + 10*time.Second
	leaseTime    = time.Minute + timeout + exchangeTime
)

// claimLock is the lock that makes claims exclusive over all nodes.
const claimLock = "tollgate mail claim"

// free returns the condition for mails that no living node sends. $1 is the time, and $2 the living epochs.
func free(tx *store.Tx) string {
	return `(lease = '' OR until_ms <= $1 OR (epoch <> '' AND NOT ` + tx.In("epoch", 2) + `))`
}

func dueText(tx *store.Tx) string {
	return `SELECT EXISTS (SELECT 1 FROM mail_outbox WHERE state < 2 AND due_ms <= $1 AND ` + free(tx) + `)`
}

func expireText(tx *store.Tx) string {
	return `UPDATE mail_outbox SET state = 3, ended_ms = $1, body_text = '', body_html = '', lease = '', epoch = '', until_ms = 0,
		error = $3 WHERE state < 2 AND expires_ms > 0 AND expires_ms <= $1 AND ` + free(tx)
}

func claimText(tx *store.Tx) string {
	return `UPDATE mail_outbox SET lease = $3, epoch = $4, until_ms = $5 WHERE id IN (SELECT id FROM mail_outbox
		WHERE state < 2 AND due_ms <= $1 AND ` + free(tx) + ` ORDER BY due_ms, id LIMIT $6)`
}

// Statements of the outbox.
const (
	claimedText = `SELECT id, kind, state, attempts, recipient, subject, body_text, body_html, created_ms, resends FROM mail_outbox
		WHERE lease = $1 ORDER BY due_ms, id`
	heldText    = `SELECT EXISTS (SELECT 1 FROM mail_outbox WHERE id = $1 AND lease = $2 AND until_ms >= $3)`
	releaseText = `UPDATE mail_outbox SET lease = '', epoch = '', until_ms = 0 WHERE lease = $1`
	recordText  = `UPDATE mail_outbox SET state = $1, attempts = attempts + 1, due_ms = $2, ended_ms = $3, error = $4,
		body_text = CASE WHEN $5 = once THEN '' ELSE body_text END, body_html = CASE WHEN $5 = once THEN '' ELSE body_html END,
		lease = '', epoch = '', until_ms = 0 WHERE id = $6`
	forgetText = `DELETE FROM mail_outbox WHERE created_ms < $1 AND state >= $2`
)

// leasedMail is a mail with a lease of this process.
type leasedMail struct {
	message
	kind     LetterKind
	lease    string
	state    int
	attempts int64 // before this one
}

// SendWaiting sends the due mails until none is left, and records each result. After ctx ends, it begins no
// further mail. When work ends, the running exchange is cut, and its mail is repeated later. Errors of the
// server are recorded and logged, not returned. SendWaiting is one step of Run.
func (m *Mailer) SendWaiting(ctx, work context.Context) error {
	for ctx.Err() == nil {
		due, err := m.hasDue(ctx)
		if err != nil || !due {
			return err
		}
		batch, err := m.claim(ctx)
		if err != nil || len(batch) == 0 {
			return err
		}
		if err := m.sendBatch(ctx, work, batch); err != nil {
			return err
		}
	}
	return nil
}

// hasDue reports whether a mail is due, without a lock.
func (m *Mailer) hasDue(ctx context.Context) (due bool, err error) {
	err = m.opts.DB.View(ctx, func(tx *store.Tx) error {
		now, living, err := m.livingTx(tx)
		if err != nil || living == nil {
			due = false
			return err
		}
		return tx.QueryRow(dueText(tx), now, store.List(living)).Scan(&due)
	})
	return due, err
}

// livingTx returns the time and the living epochs. living is nil if this node is not alive. Such a node
// must not claim mails, because other nodes would take them over.
func (m *Mailer) livingTx(tx *store.Tx) (nowMS int64, living []string, err error) {
	if nowMS, err = tx.NowMS(); err != nil {
		return 0, nil, err
	}
	nodes, err := node.MembersTx(tx)
	if err != nil {
		return 0, nil, err
	}
	if !nodes.Lives(m.opts.Node.Epoch()) {
		return nowMS, nil, nil
	}
	return nowMS, nodes.Living(), nil
}

// claim gives up mails with an expired link, and leases due mails to this node.
func (m *Mailer) claim(ctx context.Context) (batch []leasedMail, err error) {
	lease := id.New("lse_")
	err = m.opts.DB.Update(ctx, func(tx *store.Tx) error {
		batch = nil
		if err := tx.Serialize(claimLock); err != nil {
			return err
		}
		now, living, err := m.livingTx(tx)
		if err != nil || living == nil {
			return err
		}
		if _, err := tx.Exec(expireText(tx), now, store.List(living), "not sent before its link expired"); err != nil {
			return err
		}
		if _, err := tx.Exec(claimText(tx), now, store.List(living), lease, m.opts.Node.Epoch(), now+leaseTime.Milliseconds(),
			maxClaims); err != nil {
			return err
		}
		batch, err = claimedTx(tx, lease)
		return err
	})
	return batch, err
}

// claimedTx returns the mails with a lease.
func claimedTx(tx *store.Tx, lease string) ([]leasedMail, error) {
	return store.Collect(tx, func(row store.Row) (c leasedMail, err error) {
		c.lease = lease
		err = row.Scan(&c.id, &c.kind, &c.state, &c.attempts, &c.recipient, &c.subject, &c.text, &c.htmlText, &c.createdMS, &c.resends)
		return c, err
	}, claimedText, lease)
}

// sendBatch sends claimed mails over one connection and records each result at once. After a broken
// connection it dials again. If the server cannot be reached, all remaining mails of the batch fail.
// Mails left at the end of the lease are released.
func (m *Mailer) sendBatch(ctx, work context.Context, batch []leasedMail) error {
	var s *session
	var unreachable error
	defer func() {
		if s != nil {
			s.close()
		}
	}()
	for _, c := range batch {
		if ctx.Err() != nil {
			break
		}
		if s == nil && unreachable == nil {
			s, unreachable = m.dial(work)
			m.logReachable(unreachable)
		}
		if held, err := m.holds(work, c); err != nil || !held {
			if err != nil && work.Err() == nil {
				return err
			}
			break // this node was frozen or slow, and another one may send the rest
		}
		o := outcome{}
		if unreachable != nil {
			o.err = explain(unreachable)
		} else {
			usable := true
			if o, usable = s.send(m.opts.From, m.opts.Service, c.message); !usable {
				s.close()
				s = nil
			}
		}
		if work.Err() != nil && !o.sent {
			break // cut by the stop of this node, so the attempt does not count
		}
		if err := m.record(work, c, o); err != nil {
			return err
		}
	}
	return m.release(work, batch[0].lease)
}

// holds reports whether the lease of a mail lasts for another attempt. Without this check, a node frozen
// after its claim would send mails of another node.
func (m *Mailer) holds(ctx context.Context, c leasedMail) (held bool, err error) {
	err = m.opts.DB.View(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		return tx.QueryRow(heldText, c.id, c.lease, now+exchangeTime.Milliseconds()).Scan(&held)
	})
	return held, err
}

// release frees the mails with a lease.
func (m *Mailer) release(ctx context.Context, lease string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	return m.opts.DB.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(releaseText, lease)
		return err
	})
}

// record writes the result of an attempt, even if ctx has ended. If another node has taken over the
// lease meanwhile, only a success counts.
func (m *Mailer) record(ctx context.Context, c leasedMail, o outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	var d decision
	state := c.state
	err := m.opts.DB.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Lock("mail_outbox", "id", c.id); err != nil {
			return err
		}
		var lease string
		var ended int64
		if err := tx.QueryRow(`SELECT lease, state, ended_ms FROM mail_outbox WHERE id = $1`, c.id).Scan(&lease, &state, &ended); err != nil {
			return fmt.Errorf("read a mail: %w", err)
		}
		if lease != c.lease && (!o.sent || state == stateSent) {
			return nil
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		d = decide(c, now, o)
		// When a mail with a single-use link (once = 1) ends, its texts are deleted.
		eraseOnce := int64(-1)
		if d.state >= stateSent {
			eraseOnce = 1
			if o.sent || ended == 0 {
				ended = now
			}
		}
		_, err = tx.Exec(recordText, d.state, d.dueMS, ended, o.err, eraseOnce, c.id)
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("record that mail %s was attempted: %w", c.id, err), ctx.Err())
	}
	m.metrics.count(o, state, d)
	if d.state == stateGivenUp && c.state != stateGivenUp {
		m.opts.Log.Warn("mail: a mail was given up", "mail", c.id, "refused", o.refused, "attempts", c.attempts+1)
	}
	return nil
}

// logReachable logs when the server cannot be used, and when it can be used again.
func (m *Mailer) logReachable(err error) {
	switch was := m.failed.Swap(err != nil); {
	case err != nil && !was:
		m.opts.Log.Warn("mail: the SMTP server cannot be used; mails wait and are tried again for a day", "error", explain(err))
	case err == nil && was:
		m.opts.Log.Info("mail: the SMTP server can be used again")
	}
}

// stateName returns the name of a state in answers and pages.
func stateName(state int) string {
	return [...]string{stateWaiting: "waiting", stateFailed: "failed", stateSent: "sent", stateGivenUp: "given_up"}[state]
}

// stateOf returns the state with a name.
func stateOf(name string) (state int, ok bool) {
	for _, s := range []int{stateWaiting, stateFailed, stateSent, stateGivenUp} {
		if strings.EqualFold(stateName(s), name) {
			return s, true
		}
	}
	return 0, false
}
