package movement

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// The prefixes of ids. Kept charges omit them.
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

// NewCharge returns c with the packed ids of a request and a job.
func NewCharge(request, job string, c audit.Charge) audit.Charge {
	c.Request, c.Job = id.Pack(RequestPrefix, request), id.Pack(jobPrefix, job)
	return c
}

// ArchiveTx keeps the charges of receipts that are being deleted, by account, and records the
// receipts for the audit.
func ArchiveTx(tx *store.Tx, folded map[string]*audit.Folded) error {
	type chargeOf struct {
		account string
		*audit.Charge
	}
	var rest []chargeOf
	words := map[string]int64{}
	for _, account := range slices.Sorted(maps.Keys(folded)) { // neighbouring rows of the table
		for i := range folded[account].Charges {
			c := chargeOf{account, &folded[account].Charges[i]}
			rest = append(rest, c)
			words[account], words[c.Model] = 0, 0
		}
	}
	if err := numberTx(tx, words); err != nil {
		return err
	}
	for _, size := range insertSizes {
		for ; len(rest) >= size; rest = rest[size:] {
			args := make([]any, 0, size*chargeColumns)
			for _, c := range rest[:size] {
				args = append(args, words[c.account], words[c.Model], c.Seq, int64(c.Amount), int64(c.Balance), c.EndedMS, c.Request, c.Job)
			}
			if _, err := tx.Exec(insertText(size), args...); err != nil {
				return fmt.Errorf("keep charges: %w", err)
			}
		}
	}
	return audit.RecordFoldedTx(tx, folded)
}

// insertSizes are the numbers of rows that one statement inserts. Large statements save round trips
// while the account is locked, and three sizes keep the number of prepared statements small.
var insertSizes = [...]int{100, 10, 1}

// chargeColumns is the number of columns of a row.
const chargeColumns = 8

// insertText returns the statement that inserts a number of rows.
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

// numberTx sets each value of words to the number of its word in ledger_word. It adds new words to the
// table.
func numberTx(tx *store.Tx, words map[string]int64) error {
	all := slices.Sorted(maps.Keys(words))
	if len(all) == 0 {
		return nil
	}
	read := func() (missing []string, err error) {
		if err = tx.Each(func(row store.Row) error {
			var n int64
			var word string
			err := row.Scan(&n, &word)
			words[word] = n
			return err
		}, `SELECT id, word FROM ledger_word WHERE `+tx.In("word", 1), store.List(all)); err != nil {
			return nil, fmt.Errorf("read the numbers of words: %w", err)
		}
		for _, word := range all {
			if words[word] == 0 {
				missing = append(missing, word)
			}
		}
		return missing, nil
	}
	missing, err := read()
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := tx.Serialize("ledger_word"); err != nil {
		return err
	}
	for _, word := range missing {
		if _, err := tx.Exec(`INSERT INTO ledger_word (id, word) SELECT COALESCE(MAX(id), 0) + 1, $1 FROM ledger_word
			WHERE NOT EXISTS (SELECT 1 FROM ledger_word WHERE word = $1)`, word); err != nil {
			return fmt.Errorf("number a word: %w", err)
		}
	}
	_, err = read()
	return err
}
