// Package operator owns what operators do to the service, whichever way it
// reached it (operator API, console or shell), the log of it, and the audits that
// they ask for. An act that spans rooms is one function here, so that all ways do
// the same.
//
// Invariants: an act and its row of the log are one transaction, so that there is
// neither without the other (but for a resend, whose call comes before); a row is never changed and holds no secret; one audit
// runs at a time on a node.
package operator

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// Way is how an operator reached the service.
type Way string

// The ways.
const (
	Console Way = "console"
	Token   Way = "token" // the operator API
	Shell   Way = "shell"
)

// Actor is who acts.
type Actor struct {
	Way     Way
	Name    string // the email of a user; empty: who knew the operator's token, or had the shell
	Address string // where the request came from; empty in the shell
}

// The acts.
const (
	AccountCreate  = "account.create"
	AccountChange  = "account.change"
	AccountCredit  = "account.credit"
	UserCreate     = "user.create"
	UserChange     = "user.change"
	UserLink       = "user.link"
	UserDelete     = "user.delete"
	KeyCreate      = "key.create"
	KeyChange      = "key.change"
	KeyDelete      = "key.delete"
	CodeCreate     = "code.create"
	CodeVoid       = "code.void"
	WebhookChange  = "webhook.change"
	WebhookRoll    = "webhook.roll"
	DeliveryResend = "delivery.resend"
	JobCancel      = "job.cancel"
	JobRequeue     = "job.requeue"
	LineDrain      = "line.drain"
	LineResume     = "line.resume"
	CatalogApply   = "catalog.apply"
	AuditRun       = "audit.run"
)

// Acts are all acts, in the order in which people look for them.
func Acts() []string {
	return []string{AccountCreate, AccountChange, AccountCredit, UserCreate, UserChange, UserLink, UserDelete, KeyCreate, KeyChange, KeyDelete,
		CodeCreate, CodeVoid, WebhookChange, WebhookRoll, DeliveryResend, JobCancel, JobRequeue, LineDrain, LineResume, CatalogApply, AuditRun}
}

// Details are what is known of an object by name, as the operator API calls it.
type Details map[string]any

// LogRow is one row of the log. Before and After hold what the act changed; what
// it made has no before, and what it ended no after.
type LogRow struct {
	ID   string // act_…
	AtMS int64
	Actor
	Act, Object, Account string
	Before, After        Details
}

// NoteTx writes the row of an act; a change that changed nothing leaves none. Call it in
// the act's transaction.
func NoteTx(tx *store.Tx, by Actor, e LogRow) error {
	now, err := tx.NowMS()
	if err != nil {
		return fmt.Errorf("note an operator's act: %w", err)
	}
	b := tx.Batch()
	Note(b, now, by, e)
	if err := tx.Run(b); err != nil {
		return fmt.Errorf("note an operator's act: %w", err)
	}
	return nil
}

// Note is NoteTx for an act whose transaction is a batch.
func Note(b *store.Batch, nowMS int64, by Actor, e LogRow) {
	before, after := e.Before.without(e.After), e.After.without(e.Before)
	if strings.HasSuffix(e.Act, ".change") && len(before)+len(after) == 0 {
		return
	}
	b.Exec(nil, `INSERT INTO operator_log (id, at_ms, way, name, address, act, object, account, before_text, after_text)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		id.New("act_"), nowMS, string(by.Way), by.Name, by.Address, e.Act, e.Object, e.Account, before.text(), after.text())
}

// without returns the facts that the other ones do not say in the same way.
func (f Details) without(other Details) Details {
	kept := Details{}
	for name, value := range f {
		said, there := other[name]
		if !there || (Details{name: value}).text() != (Details{name: said}).text() {
			kept[name] = value
		}
	}
	return kept
}

// text is the facts as they are stored.
func (f Details) text() string {
	if len(f) == 0 {
		return "{}"
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return "{}" // facts are texts, numbers and lists of them
	}
	return string(raw)
}

// LogFilter selects rows of the log. Empty fields select all.
type LogFilter struct {
	Act, Object, Account string
	After                string // continue below this row
	Limit                int
}

// LogTx lists what operators did, newest first; the bool tells whether there is
// more.
func LogTx(tx *store.Tx, f LogFilter) ([]LogRow, bool, error) {
	var where []string
	var args []any
	for _, by := range []struct{ condition, value string }{
		{"act = ", f.Act}, {"object = ", f.Object}, {"account = ", f.Account}, {"id < ", f.After},
	} {
		if by.value != "" {
			args = append(args, by.value)
			where = append(where, by.condition+"$"+strconv.Itoa(len(args)))
		}
	}
	text := `SELECT id, at_ms, way, name, address, act, object, account, before_text, after_text FROM operator_log`
	if len(where) > 0 {
		text += ` WHERE ` + strings.Join(where, " AND ")
	}
	args = append(args, f.Limit+1)
	rows, err := tx.Query(text+` ORDER BY id DESC LIMIT $`+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, false, fmt.Errorf("read the operators' log: %w", err)
	}
	defer rows.Close()
	var list []LogRow
	for rows.Next() {
		var e LogRow
		var before, after string
		if err := rows.Scan(&e.ID, &e.AtMS, &e.Way, &e.Name, &e.Address, &e.Act, &e.Object, &e.Account, &before, &after); err != nil {
			return nil, false, fmt.Errorf("read the operators' log: %w", err)
		}
		if err := json.Unmarshal([]byte(before), &e.Before); err != nil {
			return nil, false, fmt.Errorf("read the operators' log: %w", err)
		}
		if err := json.Unmarshal([]byte(after), &e.After); err != nil {
			return nil, false, fmt.Errorf("read the operators' log: %w", err)
		}
		list = append(list, e)
	}
	if err := rows.Err(); err != nil {
		return nil, false, fmt.Errorf("read the operators' log: %w", err)
	}
	if len(list) > f.Limit {
		return list[:f.Limit], true, nil
	}
	return list, false, nil
}

// DoneByTx returns who has done an act to each of some objects, last.
func DoneByTx(tx *store.Tx, act string, objects []string) (map[string]Actor, error) {
	rows, err := tx.Query(`SELECT object, way, name, address FROM operator_log WHERE act = $1 AND `+tx.In("object", 2)+` ORDER BY id`,
		act, store.List(objects))
	if err != nil {
		return nil, fmt.Errorf("read who did it: %w", err)
	}
	defer rows.Close()
	done := make(map[string]Actor, len(objects))
	for rows.Next() {
		var object, way string
		var by Actor
		if err := rows.Scan(&object, &way, &by.Name, &by.Address); err != nil {
			return nil, fmt.Errorf("read who did it: %w", err)
		}
		by.Way = Way(way)
		done[object] = by
	}
	return done, rows.Err()
}
