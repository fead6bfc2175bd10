package operator

import (
	"context"

	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// TestMail sends a test mail; see mail.Mailer.Test. The log row follows the attempt.
func TestMail(ctx context.Context, db *store.DB, mails *mail.Mailer, by Actor, to string) (mail.OutboxMail, error) {
	e, err := mails.Test(ctx, to)
	return logMail(ctx, db, by, MailTest, e, err)
}

// ResendMail sends a mail again; see mail.Mailer.Resend. The log row follows the attempt, because an
// attempt cannot be undone.
func ResendMail(ctx context.Context, db *store.DB, mails *mail.Mailer, by Actor, id string) (mail.OutboxMail, error) {
	e, err := mails.Resend(ctx, id)
	return logMail(ctx, db, by, MailResend, e, err)
}

func logMail(ctx context.Context, db *store.DB, by Actor, act string, e mail.OutboxMail, err error) (mail.OutboxMail, error) {
	if err != nil {
		return e, err
	}
	return e, db.Update(ctx, func(tx *store.Tx) error {
		return writeLogTx(tx, by, LogRow{Act: act, Object: e.ID, Account: e.Account,
			After: Details{"kind": string(e.Kind), "to": e.To, "state": e.State}})
	})
}
