package account

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// MailPreferences are a user's choices about mails.
type MailPreferences struct {
	Locale   mail.Locale  // language of mails and of the console; empty means the browser's
	Browser  mail.Locale  // language of the browser of the last sign-in; empty before the first
	Declined []mail.Topic // unwanted topics
}

const preferenceColumns = `locale, browser_locale, declined_mails`

func scanPreferences(locale, browser, declined string) MailPreferences {
	p := MailPreferences{Locale: mail.Locale(locale), Browser: mail.Locale(browser)}
	for topic := range strings.FieldsSeq(declined) {
		p.Declined = append(p.Declined, mail.Topic(topic))
	}
	return p
}

// MailPreferencesTx returns a user's choices.
func MailPreferencesTx(tx *store.Tx, user string) (MailPreferences, error) {
	var locale, browser, declined string
	err := tx.QueryRow(`SELECT `+preferenceColumns+` FROM account_user WHERE id = $1`, user).Scan(&locale, &browser, &declined)
	if errors.Is(err, sql.ErrNoRows) {
		return MailPreferences{}, notFound("user", user)
	}
	if err != nil {
		return MailPreferences{}, fmt.Errorf("read the choices about mails: %w", err)
	}
	return scanPreferences(locale, browser, declined), nil
}

// SetMailPreferencesTx stores a user's choices, without p.Browser. The locale must be empty or one of mail.Locales, and the
// topics must be of mail.ChoosableTopics.
func SetMailPreferencesTx(tx *store.Tx, user string, p MailPreferences) error {
	declined := make([]string, 0, len(p.Declined))
	for _, topic := range p.Declined {
		declined = append(declined, string(topic))
	}
	if err := SetLocaleTx(tx, user, p.Locale); err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE account_user SET declined_mails = $1 WHERE id = $2`, strings.Join(declined, " "), user); err != nil {
		return fmt.Errorf("store the choices about mails: %w", err)
	}
	return nil
}

// SetLocaleTx stores a user's language, which is empty or one of mail.Locales.
func SetLocaleTx(tx *store.Tx, user string, locale mail.Locale) error {
	changed, err := tx.Exec(`UPDATE account_user SET locale = $1 WHERE id = $2`, string(locale), user)
	if err != nil {
		return fmt.Errorf("store a user's language: %w", err)
	}
	if changed == 0 {
		return notFound("user", user)
	}
	return nil
}

// SetBrowserLocaleTx stores the language of the browser with which a user signs in.
func SetBrowserLocaleTx(tx *store.Tx, user string, locale mail.Locale) error {
	if _, err := tx.Exec(`UPDATE account_user SET browser_locale = $1 WHERE id = $2`, string(locale), user); err != nil {
		return fmt.Errorf("store the language of a browser: %w", err)
	}
	return nil
}

// MailUserTx adds a mail to a user to the outbox, in the user's language. If the user has chosen none, the language is
// l.Locale, or else that of the user's browser. It does nothing if mail is off.
func MailUserTx(tx *store.Tx, mails *mail.Mailer, u User, l mail.Letter) error {
	if !mails.On() {
		return nil
	}
	p, err := MailPreferencesTx(tx, u.ID)
	if err != nil {
		return err
	}
	return enqueueTx(tx, mails, u, p, l)
}

// MailUsersTx is MailUserTx for each user of an account who can sign in and wants mails of the topic.
func MailUsersTx(tx *store.Tx, mails *mail.Mailer, account string, l mail.Letter) error {
	if !mails.On() {
		return nil
	}
	a, err := GetTx(tx, account)
	if err != nil {
		return err
	}
	l.AccountName = a.Name
	type reader struct {
		user        User
		preferences MailPreferences
	}
	readers, err := store.Collect(tx, func(row store.Row) (r reader, err error) {
		var locale, browser, declined string
		err = row.Scan(append(r.user.columns(), &locale, &browser, &declined)...)
		r.preferences = scanPreferences(locale, browser, declined)
		return r, err
	}, `SELECT `+userColumns+`, `+preferenceColumns+` FROM account_user
		WHERE account = $1 AND disabled = 0 AND (password <> '`+noPassword+`' OR `+hasIdentity+`) ORDER BY id`, account)
	if err != nil {
		return fmt.Errorf("read the readers of a mail: %w", err)
	}
	for _, r := range readers {
		if slices.Contains(r.preferences.Declined, l.Kind.Topic()) {
			continue
		}
		if err := enqueueTx(tx, mails, r.user, r.preferences, l); err != nil {
			return err
		}
	}
	return nil
}

func enqueueTx(tx *store.Tx, mails *mail.Mailer, u User, p MailPreferences, l mail.Letter) error {
	l.Account, l.Subject, l.To = u.Account, u.ID, u.Email
	l.Locale = cmp.Or(p.Locale, l.Locale, p.Browser)
	return mails.EnqueueTx(tx, l)
}
