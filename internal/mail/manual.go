package mail

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// OutboxMail is a mail of the outbox, without its text.
type OutboxMail struct {
	ID        string // mail_…
	Kind      LetterKind
	Account   string // of the reader; empty for an operator
	To        string
	Subject   string
	State     string // waiting, failed, sent or given_up
	Attempts  int64
	Error     string // of the last attempt; empty after a success
	CreatedMS int64
	NextMS    int64 // when the next attempt is due; 0 if the mail has ended
	SentMS    int64 // when the server took it; 0 if not sent
	Once      bool  // it has a single-use link, so it cannot be sent again after its end
}

const entryText = `SELECT id, kind, account, recipient, subject, state, attempts, error, created_ms, due_ms, ended_ms, once
	FROM mail_outbox WHERE `

func scanEntry(row store.Row) (e OutboxMail, err error) {
	var state int
	var due, ended int64
	err = row.Scan(&e.ID, &e.Kind, &e.Account, &e.To, &e.Subject, &state, &e.Attempts, &e.Error, &e.CreatedMS, &due, &ended, &e.Once)
	if err != nil {
		return e, err
	}
	e.State = stateName(state)
	switch state {
	case stateSent:
		e.SentMS = ended
	case stateWaiting, stateFailed:
		e.NextMS = due
	}
	return e, nil
}

// entryTx returns a mail, or a *fault.Error for an unknown id.
func entryTx(tx *store.Tx, mail string) (OutboxMail, error) {
	e, err := scanEntry(tx.QueryRow(entryText+`id = $1`, mail))
	if errors.Is(err, sql.ErrNoRows) {
		return e, fault.New(fault.NotFound, "There is no such mail, or it was deleted after 30 days.")
	}
	if err != nil {
		return e, fmt.Errorf("read a mail: %w", err)
	}
	return e, nil
}

// OutboxFilter selects mails of the outbox. Empty fields match all mails.
type OutboxFilter struct {
	Account string
	State   string // a name of OutboxMail.State
	After   string // only older mails than this id
	Limit   int
}

// ListTx returns the mails selected by f, newest first, and reports whether there are more. An unknown
// state is a *fault.Error.
func ListTx(tx *store.Tx, f OutboxFilter) (list []OutboxMail, more bool, err error) {
	text, args := entryText+`($1 = '' OR id < $1)`, []any{f.After}
	add := func(column string, value any) {
		args = append(args, value)
		text += fmt.Sprintf(" AND %s = $%d", column, len(args))
	}
	if f.Account != "" {
		add("account", f.Account)
	}
	if f.State != "" {
		state, ok := stateOf(f.State)
		if !ok {
			return nil, false, fault.At(fault.InvalidRequest, "state", "state must be waiting, failed, sent or given_up.")
		}
		add("state", state)
	}
	args = append(args, f.Limit+1)
	if list, err = store.Collect(tx, scanEntry, text+fmt.Sprintf(" ORDER BY id DESC LIMIT $%d", len(args)), args...); err != nil {
		return nil, false, fmt.Errorf("read the outbox: %w", err)
	}
	if len(list) > f.Limit {
		return list[:f.Limit], true, nil
	}
	return list, false, nil
}

// errOff is the error for an action without a server.
func errOff() error {
	return fault.New(fault.InvalidRequest, "Mail is off. Set smtp_server and mail_from, and restart the service.")
}

// Test sends a test mail to an address now and returns its entry after the attempt. It goes through
// the outbox like every other mail. Errors: *fault.Error if mail is off or the address is invalid.
func (m *Mailer) Test(ctx context.Context, to string) (OutboxMail, error) {
	if !m.On() {
		return OutboxMail{}, errOff()
	}
	if _, err := ParseAddress(to); err != nil {
		return OutboxMail{}, fault.At(fault.InvalidRequest, "to", "to %s.", err)
	}
	return m.sendNow(ctx, func(tx *store.Tx) (string, error) {
		return m.insertTx(tx, Letter{Kind: Test, Subject: to, Cause: id.New("test_"), To: to})
	})
}

// maxResends bounds the resends of a mail.
const maxResends = 20

// Resend sends a mail again now, with a new Message-ID, and returns its entry after the attempt. A failure
// does not change the state of a mail that was sent or given up. Errors: *fault.Error if mail is off, the
// mail does not exist, is being sent, was resent too often, or had a single-use link.
func (m *Mailer) Resend(ctx context.Context, mail string) (OutboxMail, error) {
	if !m.On() {
		return OutboxMail{}, errOff()
	}
	return m.sendNow(ctx, func(tx *store.Tx) (string, error) {
		if err := tx.Serialize(claimLock); err != nil {
			return "", err
		}
		e, err := entryTx(tx, mail)
		if err != nil {
			return "", err
		}
		if e.Once && e.NextMS == 0 {
			return "", fault.New(fault.InvalidRequest, "This mail had a link that works once, so its text was deleted. Make a new link instead.")
		}
		now, err := tx.NowMS()
		if err != nil {
			return "", err
		}
		var resends, untilMS int64
		if err := tx.QueryRow(`SELECT resends, until_ms FROM mail_outbox WHERE id = $1`, mail).Scan(&resends, &untilMS); err != nil {
			return "", fmt.Errorf("read a mail: %w", err)
		}
		switch {
		case untilMS > now:
			return "", fault.New(fault.InvalidRequest, "This mail is being sent at this moment. Look again in two minutes.")
		case resends >= maxResends:
			return "", fault.New(fault.InvalidRequest, "This mail was resent %d times already, which is the most.", maxResends)
		}
		_, err = tx.Exec(`UPDATE mail_outbox SET resends = resends + 1 WHERE id = $1`, mail)
		return mail, err
	})
}

// sendNow makes one attempt to send the mail selected or created by choose, in the goroutine of the
// caller, and returns its entry after the attempt. The caller cannot cancel a running attempt.
func (m *Mailer) sendNow(ctx context.Context, choose func(tx *store.Tx) (mail string, err error)) (e OutboxMail, err error) {
	ctx = context.WithoutCancel(ctx)
	lease := id.New("lse_")
	var batch []leasedMail
	err = m.opts.DB.Update(ctx, func(tx *store.Tx) error {
		mail, err := choose(tx)
		if err != nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		// A command has no node, so its lease has no epoch and ends only by its time.
		if _, err := tx.Exec(`UPDATE mail_outbox SET lease = $1, epoch = '', until_ms = $2 WHERE id = $3`, lease,
			now+leaseTime.Milliseconds(), mail); err != nil {
			return fmt.Errorf("claim a mail: %w", err)
		}
		batch, err = claimedTx(tx, lease)
		return err
	})
	if err != nil {
		return OutboxMail{}, err
	}
	if err := m.sendBatch(ctx, ctx, batch); err != nil {
		return OutboxMail{}, err
	}
	return store.Read(ctx, m.opts.DB, func(tx *store.Tx) (OutboxMail, error) { return entryTx(tx, batch[0].id) })
}
