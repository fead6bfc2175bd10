// Package operator owns the actions of operators through the operator API, the console and the shell, their
// log, and background audits. An action that spans several packages is one function here, so that every Way
// has the same effect.
//
// Invariants: an action and its log row are one transaction, except for resends and test mails: their row
// follows the attempt. A log row never changes and contains no secret. A node runs one audit at a time.
package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Way is the interface that an operator used.
type Way string

// Values of Way.
const (
	Console Way = "console"
	Token   Way = "token" // the operator API
	Shell   Way = "shell"
	SignUp  Way = "sign_up" // a customer who signs up

	// Settings is a user who changes their own sign-in in the settings or with an invitation, or whose
	// identity provider claims a role.
	Settings Way = "settings"
)

// Actor identifies an operator, or a customer who signs up.
type Actor struct {
	Way     Way
	Name    string // the email of a user; empty for the operator's token and the shell
	Address string // the client address; empty in the shell
	// Role is Owner for the operator's token and the shell. The log does not store the role.
	Role account.OperatorRole
}

// Actions in the log.
const (
	AccountCreate = "account.create"
	AccountChange = "account.change"
	AccountCredit = "account.credit"
	AccountTrial  = "account.trial"
	EntryChange   = "entry.change"
	EntryInvoice  = "entry.invoice"
	UserCreate    = "user.create"
	UserChange    = "user.change"
	UserLink      = "user.link"
	UserDelete    = "user.delete"

	UserIdentityAdd    = "user.identity_add"
	UserIdentityRemove = "user.identity_remove"

	KeyCreate      = "key.create"
	KeyChange      = "key.change"
	KeyDelete      = "key.delete"
	CodeCreate     = "code.create"
	CodeVoid       = "code.void"
	WebhookChange  = "webhook.change"
	WebhookRoll    = "webhook.roll"
	DeliveryResend = "delivery.resend"
	MailTest       = "mail.test"
	MailResend     = "mail.resend"
	JobCancel      = "job.cancel"
	JobRequeue     = "job.requeue"
	LineDrain      = "line.drain"
	LineResume     = "line.resume"
	CatalogApply   = "catalog.apply"

	CatalogSchedule = "catalog.schedule"
	CatalogCancel   = "catalog.cancel"

	SecretStore  = "secret.store"
	SecretDelete = "secret.delete"
	SecretRotate = "secret.rotate"
	TopupRefund  = "topup.refund"
	ProblemClose = "problem.close"
	AuditRun     = "audit.run"

	AnnouncementCreate = "announcement.create"
	AnnouncementChange = "announcement.change"
	AnnouncementDelete = "announcement.delete"
)

// Acts returns all actions in the order of the console's filter.
func Acts() []string {
	return []string{AccountCreate, AccountChange, AccountCredit, AccountTrial, EntryChange, EntryInvoice, UserCreate, UserChange, UserLink,
		UserDelete,
		UserIdentityAdd, UserIdentityRemove,
		KeyCreate, KeyChange, KeyDelete,
		CodeCreate, CodeVoid, WebhookChange, WebhookRoll, DeliveryResend, MailTest, MailResend,
		JobCancel, JobRequeue, LineDrain, LineResume, CatalogApply, CatalogSchedule, CatalogCancel,
		SecretStore, SecretDelete, SecretRotate,
		TopupRefund, ProblemClose, AnnouncementCreate, AnnouncementChange, AnnouncementDelete, AuditRun}
}

// Details describes an object with the field names of the operator API.
type Details map[string]any

// LogRow is a row of the log. Before and After hold the changed fields; Before is empty for a
// creation, After for a deletion.
type LogRow struct {
	ID   string // act_…
	AtMS int64
	Actor
	Act, Object, Account string
	Before, After        Details
}

// writeLogTx writes a log row in the transaction of the action. An action NAME.change that changed nothing
// has no row.
func writeLogTx(tx *store.Tx, by Actor, e LogRow) error {
	now, err := tx.NowMS()
	if err != nil {
		return fmt.Errorf("log an operator's action: %w", err)
	}
	b := tx.Batch()
	writeLog(b, now, by, e)
	if err := tx.Run(b); err != nil {
		return fmt.Errorf("log an operator's action: %w", err)
	}
	return nil
}

// writeLog adds the statement of writeLogTx to the batch of an action.
func writeLog(b *store.Batch, nowMS int64, by Actor, e LogRow) {
	before, after := e.Before.differences(e.After), e.After.differences(e.Before)
	if strings.HasSuffix(e.Act, ".change") && len(before)+len(after) == 0 {
		return
	}
	b.Exec(nil, `INSERT INTO operator_log (id, at_ms, way, name, address, act, object, account, before_text, after_text)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		id.New("act_"), nowMS, string(by.Way), by.Name, by.Address, e.Act, e.Object, e.Account, before.text(), after.text())
}

// differences returns the members of d that differ from other.
func (d Details) differences(other Details) Details {
	found := Details{}
	for name, value := range d {
		otherValue, ok := other[name]
		if !ok || (Details{name: value}).text() != (Details{name: otherValue}).text() {
			found[name] = value
		}
	}
	return found
}

// text returns the details as stored.
func (d Details) text() string {
	if len(d) == 0 {
		return "{}"
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return "{}" // details are texts, numbers and lists: encoding them cannot fail
	}
	return string(raw)
}

// LogFilter selects rows of the log. Empty fields match every row.
type LogFilter struct {
	Act, Object, Account string
	After                string // id of a row; the list continues with older rows
	Limit                int
}

// LogTx returns rows of the log, newest first, and reports whether there are more.
func LogTx(tx *store.Tx, f LogFilter) ([]LogRow, bool, error) {
	var where []string
	var args []any
	for _, c := range []struct{ condition, value string }{
		{"act = ", f.Act}, {"object = ", f.Object}, {"account = ", f.Account}, {"id < ", f.After},
	} {
		if c.value != "" {
			args = append(args, c.value)
			where = append(where, c.condition+"$"+strconv.Itoa(len(args)))
		}
	}
	text := `SELECT id, at_ms, way, name, address, act, object, account, before_text, after_text FROM operator_log`
	if len(where) > 0 {
		text += ` WHERE ` + strings.Join(where, " AND ")
	}
	args = append(args, f.Limit+1)
	list, err := store.Collect(tx, func(row store.Row) (e LogRow, err error) {
		var before, after string
		err = row.Scan(&e.ID, &e.AtMS, &e.Way, &e.Name, &e.Address, &e.Act, &e.Object, &e.Account, &before, &after)
		if err == nil {
			err = errors.Join(json.Unmarshal([]byte(before), &e.Before), json.Unmarshal([]byte(after), &e.After))
		}
		return e, err
	}, text+` ORDER BY id DESC LIMIT $`+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, false, fmt.Errorf("read the operators' log: %w", err)
	}
	if len(list) > f.Limit {
		return list[:f.Limit], true, nil
	}
	return list, false, nil
}

// LastActorsTx returns the operators who last did the action act, by object.
func LastActorsTx(tx *store.Tx, act string, objects []string) (map[string]Actor, error) {
	actors := make(map[string]Actor, len(objects))
	err := tx.Each(func(row store.Row) error {
		var object string
		var by Actor
		err := row.Scan(&object, &by.Way, &by.Name, &by.Address)
		actors[object] = by
		return err
	}, `SELECT object, way, name, address FROM operator_log WHERE act = $1 AND `+tx.In("object", 2)+` ORDER BY id`,
		act, store.List(objects))
	if err != nil {
		return nil, fmt.Errorf("read the operators of %s: %w", act, err)
	}
	return actors, nil
}
