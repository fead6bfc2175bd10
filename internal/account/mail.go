package account

import (
	"fmt"

	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// MailUsersTx adds a mail to the outbox for each user of an account who can sign in. Cause identifies
// the reported event. MailUsersTx does nothing if mail is off.
func MailUsersTx(tx *store.Tx, mails *mail.Mailer, account string, l mail.Letter) error {
	if !mails.On() {
		return nil
	}
	a, err := GetTx(tx, account)
	if err != nil {
		return err
	}
	users, err := store.Collect(tx, scanUser, `SELECT `+userColumns+` FROM account_user
		WHERE account = $1 AND disabled = 0 AND password <> '`+noPassword+`' ORDER BY id`, account)
	if err != nil {
		return fmt.Errorf("read the readers of a mail: %w", err)
	}
	l.Account, l.AccountName = a.ID, a.Name
	for _, u := range users {
		l.Subject, l.To = u.ID, u.Email
		if err := mails.EnqueueTx(tx, l); err != nil {
			return err
		}
	}
	return nil
}
