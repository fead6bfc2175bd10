package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/account"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// keysAtOnce is the maximum number of keys in a transaction. A longer transaction would delay other
// writers.
const keysAtOnce = 100

// errDry rolls back a transaction of a dry run.
var errDry = errors.New("dry run")

// Write creates the missing accounts and keys and returns a report. Each transaction also records the
// imported entries, so Write may be repeated after an interruption. A dry run rolls back each
// transaction and returns the same counts.
func (c *Contents) Write(ctx context.Context, db *store.DB, dryRun bool) (*ImportReport, error) {
	w := writer{plan: c, db: db, dry: dryRun, by: operator.Actor{Way: operator.Shell, Role: account.Owner}}
	for i := range c.Accounts {
		if err := w.account(ctx, &c.Accounts[i]); err != nil {
			return nil, fmt.Errorf("import %s %s: %w", c.Name, c.Accounts[i].ID, err)
		}
	}
	return &ImportReport{Program: c.Program, Name: c.Name, DryRun: dryRun, Counts: c.Counts, Credit: w.credit, Remarks: c.Remarks}, nil
}

// writer writes a plan.
type writer struct {
	plan   *Contents
	db     *store.DB
	dry    bool
	by     operator.Actor
	credit money.Amount
	done   txReport // of the current transaction
}

// txReport has the counts, remarks and credits of one transaction.
type txReport struct {
	notes
	credit money.Amount
}

// update runs fn in a transaction and adds its changes to the report; a dry run rolls the
// transaction back.
func (w *writer) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	err := w.db.Update(ctx, func(tx *store.Tx) error {
		w.done = txReport{}
		if err := tx.Serialize("import " + w.plan.Name); err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		if w.dry {
			return errDry
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDry) {
		return err
	}
	for _, c := range w.done.Counts {
		count := w.plan.count(c.What)
		count.Made, count.There, count.Left = count.Made+c.Made, count.There+c.There, count.Left+c.Left
	}
	w.credit += w.done.credit
	w.plan.Remarks = append(w.plan.Remarks, w.done.Remarks...)
	return nil
}

// account creates an account with its first keys, then its other keys.
func (w *writer) account(ctx context.Context, a *Customer) error {
	first := a.Keys[:min(len(a.Keys), keysAtOnce)]
	var id string
	err := w.update(ctx, func(tx *store.Tx) (err error) {
		if id, err = w.accountTx(tx, a); err != nil || id == "" {
			w.done.count("keys").Left = len(a.Keys)
			return err
		}
		return w.keysTx(tx, id, first)
	})
	if err != nil || id == "" {
		return err
	}
	for chunk := range slices.Chunk(a.Keys[len(first):], keysAtOnce) {
		if err := w.moreKeys(ctx, id, chunk); err != nil {
			return err
		}
	}
	return nil
}

// moreKeys creates further keys of an account. In a dry run, the transaction that created the
// account is rolled back already, so moreKeys only looks up the keys.
func (w *writer) moreKeys(ctx context.Context, id string, keys []OldKey) error {
	return w.update(ctx, func(tx *store.Tx) error {
		if w.dry {
			if _, err := account.GetTx(tx, id); account.IsNotFound(err) {
				w.done.count("keys").Made = len(keys)
				return nil
			}
		}
		return w.keysTx(tx, id, keys)
	})
}

// accountTx creates an account unless it exists, and returns its id. The id is empty if another
// entry has the same identifier.
func (w *writer) accountTx(tx *store.Tx, a *Customer) (string, error) {
	earlier, err := itemTx(tx, w.plan.Name, kindAccount, a.ID)
	if err != nil {
		return "", err
	}
	accounts, signIns := w.done.count("accounts"), w.done.count("sign_ins")
	switch {
	case earlier.object != "" && earlier.mark != a.Mark:
		accounts.Left++
		if a.SignIn {
			signIns.Left++
		}
		w.done.remark(entry{"user", a.ID, a.Mark},
			"it is left out: an earlier import created an account for "+excerpt(earlier.mark)+" from its ID",
			"if this is another database, give it a --name of its own")
		return "", nil
	case earlier.object != "":
		accounts.There++
		if a.SignIn {
			signIns.There++
		}
		return earlier.object, nil
	}
	accounts.Made++
	created, err := operator.CreateAccountTx(tx, w.by, a.Opening)
	if err != nil {
		return "", err
	}
	if err := w.fillAccountTx(tx, created.ID, a); err != nil {
		return "", err
	}
	return created.ID, addItemTx(tx, w.plan.Name, kindAccount, a.ID, item{mark: a.Mark, object: created.ID})
}

// fillAccountTx adds everything except the keys to a new account.
func (w *writer) fillAccountTx(tx *store.Tx, id string, a *Customer) error {
	if a.Note != "" || a.Disabled {
		change := account.Patch{Note: &a.Note}
		if a.Disabled {
			change.Disabled = &a.Disabled
		}
		if _, err := operator.ChangeAccountTx(tx, w.by, id, change); err != nil {
			return err
		}
	}
	if a.Credit != 0 {
		credit := operator.Credit{USD: a.Credit, Note: "opening balance from " + w.plan.Name}
		if err := credit.Check(); err != nil {
			return err
		}
		if _, err := operator.CreditTx(tx, w.by, id, credit); err != nil {
			return err
		}
		w.done.credit += a.Credit
	}
	if !a.SignIn {
		return nil
	}
	exists, err := account.EmailTakenTx(tx, a.Opening.Email)
	if err != nil {
		return err
	}
	if exists {
		w.done.count("sign_ins").Left++
		w.done.remark(entry{"user", a.ID, a.Mark}, "it has no sign-in: another user already has its email", "add one with `tollgate user create`")
		return nil
	}
	w.done.count("sign_ins").Made++
	_, err = operator.CreateUserTx(tx, w.by, id, account.SignIn{Email: a.Opening.Email})
	return err
}

// keysTx creates the missing keys of an account.
func (w *writer) keysTx(tx *store.Tx, id string, keys []OldKey) error {
	for _, k := range keys {
		earlier, err := itemTx(tx, w.plan.Name, kindKey, k.ID)
		if err != nil {
			return err
		}
		if earlier.object != "" && earlier.mark == k.Proof.Hash {
			w.done.count("keys").There++
			continue
		}
		if earlier.object != "" {
			w.done.count("keys").Left++
			w.done.remark(entry{"token", k.ID, k.Settings.Name}, "it is left out: an earlier import created another key for its ID",
				"if this is another database, give it a --name of its own")
			continue
		}
		if err := w.keyTx(tx, id, k); err != nil {
			return err
		}
	}
	return nil
}

// keyTx creates a key.
func (w *writer) keyTx(tx *store.Tx, id string, k OldKey) error {
	key, err := operator.ImportKeyTx(tx, w.by, id, k.Settings, k.Proof)
	switch {
	case errors.Is(err, account.ErrKeyTaken), errors.Is(err, account.ErrKeyHash), account.IsInvalid(err):
		w.done.count("keys").Left++
		w.done.remark(entry{"token", k.ID, k.Settings.Name}, "it is left out: "+oneLine(err.Error()),
			"make a key for it with `tollgate key create`")
		return nil
	case err != nil:
		return err
	}
	w.done.count("keys").Made++
	return addItemTx(tx, w.plan.Name, kindKey, k.ID, item{mark: k.Proof.Hash, object: key.ID})
}
