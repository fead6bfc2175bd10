package movement

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// The prefixes of ids, which kept charges omit.
const (
	RequestPrefix = "req_"
	jobPrefix     = "job_"
)

// Charge is the permanent record of a charged request; the receipt is deleted after the retention.
type Charge struct {
	Request, Job    string // Job is empty for chat
	Account, Model  string
	Amount, Balance money.Amount // Balance is the balance after the charge
	EndedMS         int64
}

// ErrNoCharge means that no charge of this request is kept: the request is unknown or was not
// charged, or its receipt still exists.
var ErrNoCharge = errors.New("no charge is kept of this request")

const chargeText = `SELECT c.job, a.word, m.word, c.amount_nano, c.balance_nano, c.ended_ms
	FROM ledger_charge c JOIN ledger_word a ON a.id = c.account JOIN ledger_word m ON m.id = c.model WHERE c.request = $1`

const oldChargeText = `SELECT job, account, model, cost_nano, balance_nano, ended_ms FROM ` + audit.Unfolded + `
	AND id = $1 AND cost_nano > 0`

// ChargeTx returns the charge of a request that has left the request log, or ErrNoCharge.
func ChargeTx(tx *store.Tx, request string) (Charge, error) {
	c := Charge{Request: request}
	err := tx.QueryRow(oldChargeText, request).Scan(&c.Job, &c.Account, &c.Model, &c.Amount, &c.Balance, &c.EndedMS)
	if err == nil {
		return c, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return Charge{}, fmt.Errorf("read an old charge: %w", err)
	}
	var job []byte
	err = tx.QueryRow(chargeText, id.Pack(RequestPrefix, request)).Scan(&job, &c.Account, &c.Model, &c.Amount, &c.Balance, &c.EndedMS)
	if errors.Is(err, sql.ErrNoRows) {
		return Charge{}, ErrNoCharge
	}
	if err != nil {
		return Charge{}, fmt.Errorf("read a kept charge: %w", err)
	}
	c.Job = id.Unpack(jobPrefix, job)
	return c, nil
}

// NewCharge returns kept with its request and job.
func NewCharge(request, job string, kept audit.Charge) audit.Charge {
	kept.Request, kept.Job = id.Pack(RequestPrefix, request), id.Pack(jobPrefix, job)
	return kept
}

// ArchiveTx keeps the charges of receipts that are being deleted, and records them for the audit.
// The caller has locked the account.
func ArchiveTx(tx *store.Tx, account string, charges []audit.Charge) error {
	if len(charges) == 0 {
		return nil
	}
	words := map[string]int64{}
	number := func(word string) (int64, error) {
		if n, ok := words[word]; ok {
			return n, nil
		}
		n, err := wordTx(tx, word)
		words[word] = n
		return n, err
	}
	of, err := number(account)
	if err != nil {
		return err
	}
	rest := charges
	for _, size := range insertSizes {
		for ; len(rest) >= size; rest = rest[size:] {
			args := make([]any, 0, size*chargeColumns)
			for i := range rest[:size] {
				c := &rest[i]
				model, err := number(c.Model)
				if err != nil {
					return err
				}
				args = append(args, of, model, c.Seq, int64(c.Amount), int64(c.Balance), c.EndedMS, c.Request, c.Job)
			}
			if _, err := tx.Exec(insertText(size), args...); err != nil {
				return fmt.Errorf("keep charges: %w", err)
			}
		}
	}
	return audit.RecordChargesTx(tx, account, charges)
}

// insertSizes are the numbers of rows that one statement inserts. Large statements save round trips
// while the account is locked, and three sizes keep the number of prepared statements small.
var insertSizes = [...]int{100, 10, 1}

// chargeColumns is the number of columns of a row.
const chargeColumns = 8

// insertText returns the statement that inserts rows rows.
func insertText(rows int) string {
	var b strings.Builder
	b.WriteString(`INSERT INTO ledger_charge (account, model, seq, amount_nano, balance_nano, ended_ms, request, job) VALUES `)
	for row := range rows {
		for column := range chargeColumns {
			b.WriteString(map[bool]string{true: "(", false: ", "}[column == 0])
			b.WriteString("$" + strconv.Itoa(row*chargeColumns+column+1))
		}
		b.WriteString(map[bool]string{true: ")", false: "), "}[row == rows-1])
	}
	return b.String()
}

// wordTx returns the number of a word. A new word gets a number.
func wordTx(tx *store.Tx, word string) (int64, error) {
	read := func() (n int64, err error) {
		err = tx.QueryRow(`SELECT id FROM ledger_word WHERE word = $1`, word).Scan(&n)
		return n, err
	}
	n, err := read()
	if !errors.Is(err, sql.ErrNoRows) {
		return n, err
	}
	if err := tx.Serialize("ledger_word"); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(`INSERT INTO ledger_word (id, word) SELECT COALESCE(MAX(id), 0) + 1, $1 FROM ledger_word
		WHERE NOT EXISTS (SELECT 1 FROM ledger_word WHERE word = $1)`, word); err != nil {
		return 0, fmt.Errorf("number a word: %w", err)
	}
	return read()
}
