package importer

import (
	"context"
	"errors"
	"fmt"

	"tollgate/internal/account"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// keysAtOnce is the number of keys in a transaction; larger ones would delay other writers.
const keysAtOnce = 100

// errDry rolls back a transaction of a dry run.
var errDry = errors.New("dry run")

// Write creates the missing accounts and keys of a plan and reports. Each transaction also records
// the imported entries, so Write may be repeated after an interruption. A dry run rolls back each
// transaction and counts the same.
func (p *Contents) Write(ctx context.Context, db *store.DB, dryRun bool) (*ImportReport, error) {
	w := writer{plan: p, db: db, dry: dryRun, by: operator.Actor{Way: operator.Shell}}
	for i := range p.Accounts {
		if err := w.account(ctx, &p.Accounts[i]); err != nil {
			return nil, fmt.Errorf("import %s %s: %w", p.Name, p.Accounts[i].ID, err)
		}
	}
	return &ImportReport{Program: p.Program, Name: p.Name, DryRun: dryRun, Counts: p.Counts, Credit: w.credit, Remarks: p.Remarks}, nil
}

// writer writes a plan.
type writer struct {
	plan   *Contents
	db     *store.DB
	dry    bool
	by     operator.Actor
	credit money.Amount
}

// update runs fn in a transaction; a dry run rolls it back.
func (w *writer) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	err := w.db.Update(ctx, func(tx *store.Tx) error {
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
	if errors.Is(err, errDry) {
		return nil
	}
	return err
}

// account creates an account with its first keys, then its other keys.
func (w *writer) account(ctx context.Context, a *Customer) error {
	first := a.Keys[:min(len(a.Keys), keysAtOnce)]
	var id string
	var result batchResult
	err := w.update(ctx, func(tx *store.Tx) (err error) {
		result = batchResult{}
		if id, err = w.accountTx(tx, a, &result); err != nil || id == "" {
			return err
		}
		return w.keysTx(tx, id, first, &result)
	})
	if err != nil {
		return err
	}
	if id == "" {
		result.keysLeft = len(a.Keys)
	}
	result.into(w)
	for rest := a.Keys[len(first):]; len(rest) > 0 && id != ""; {
		some := rest[:min(len(rest), keysAtOnce)]
		rest = rest[len(some):]
		if err := w.moreKeys(ctx, id, some); err != nil {
			return err
		}
	}
	return nil
}

// moreKeys creates further keys of an account. In a dry run, the transaction that created the
// account is rolled back already, so moreKeys only looks up the keys.
func (w *writer) moreKeys(ctx context.Context, id string, keys []OldKey) error {
	var result batchResult
	err := w.update(ctx, func(tx *store.Tx) error {
		result = batchResult{}
		if w.dry {
			if _, err := account.GetTx(tx, id); account.IsUnknown(err) {
				result.keys = len(keys)
				return nil
			}
		}
		return w.keysTx(tx, id, keys, &result)
	})
	if err == nil {
		result.into(w)
	}
	return err
}

// batchResult counts the changes of one transaction.
type batchResult struct {
	accounts, accountsThere, accountsLeft int
	signIns, signInsThere, signInsLeft    int
	keys, keysThere, keysLeft             int
	credit                                money.Amount
	remarks                               []Remark
}

// into adds a result to the report.
func (o batchResult) into(w *writer) {
	p := w.plan
	for _, c := range []struct {
		what              string
		made, there, left int
	}{
		{"accounts", o.accounts, o.accountsThere, o.accountsLeft},
		{"sign_ins", o.signIns, o.signInsThere, o.signInsLeft},
		{"keys", o.keys, o.keysThere, o.keysLeft},
	} {
		count := p.count(c.what)
		count.Made, count.There, count.Left = count.Made+c.made, count.There+c.there, count.Left+c.left
	}
	w.credit += o.credit
	p.Remarks = append(p.Remarks, o.remarks...)
}

func (o *batchResult) remark(about, id, name, what, do string) {
	o.remarks = append(o.remarks, Remark{About: about, ID: id, Name: shown(name), What: what, Do: do})
}

// accountTx creates an account unless it exists, and returns its id. The id is empty if another
// entry has the same identifier.
func (w *writer) accountTx(tx *store.Tx, a *Customer, result *batchResult) (string, error) {
	there, err := itemTx(tx, w.plan.Name, kindAccount, a.ID)
	if err != nil {
		return "", err
	}
	switch {
	case there.object != "" && there.mark != a.Mark:
		result.accountsLeft++
		if a.SignIn {
			result.signInsLeft++
		}
		result.remark("user", a.ID, a.Mark, "it is left out: an earlier import created an account for "+shown(there.mark)+" from its ID",
			"if this is another database, give it a --name of its own")
		return "", nil
	case there.object != "":
		result.accountsThere++
		if a.SignIn {
			result.signInsThere++
		}
		return there.object, nil
	}
	result.accounts++
	opened, err := operator.CreateAccountTx(tx, w.by, a.Opening)
	if err != nil {
		return "", err
	}
	if err := w.fillAccountTx(tx, opened.ID, a, result); err != nil {
		return "", err
	}
	return opened.ID, addItemTx(tx, w.plan.Name, kindAccount, a.ID, item{mark: a.Mark, object: opened.ID})
}

// fillAccountTx adds everything except the keys to a new account.
func (w *writer) fillAccountTx(tx *store.Tx, id string, a *Customer, result *batchResult) error {
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
		if _, _, err := operator.CreditTx(tx, w.by, id, credit); err != nil {
			return err
		}
		result.credit += a.Credit
	}
	if !a.SignIn {
		return nil
	}
	taken, err := account.EmailTakenTx(tx, a.Opening.Email)
	if err != nil {
		return err
	}
	if taken {
		result.signInsLeft++
		result.remark("user", a.ID, a.Mark, "it has no sign-in: another user already has its email", "add one with `tollgate user create`")
		return nil
	}
	result.signIns++
	_, err = operator.CreateUserTx(tx, w.by, id, account.SignIn{Email: a.Opening.Email})
	return err
}

// keysTx creates the missing keys of an account.
func (w *writer) keysTx(tx *store.Tx, id string, keys []OldKey, result *batchResult) error {
	for _, k := range keys {
		there, err := itemTx(tx, w.plan.Name, kindKey, k.ID)
		if err != nil {
			return err
		}
		if there.object != "" && there.mark == k.Proof.Hash {
			result.keysThere++
			continue
		}
		if there.object != "" {
			result.keysLeft++
			result.remark("token", k.ID, k.Settings.Name, "it is left out: an earlier import created another key for its ID",
				"if this is another database, give it a --name of its own")
			continue
		}
		if err := w.keyTx(tx, id, k, result); err != nil {
			return err
		}
	}
	return nil
}

// keyTx creates a key.
func (w *writer) keyTx(tx *store.Tx, id string, k OldKey, result *batchResult) error {
	key, err := operator.ImportKeyTx(tx, w.by, id, k.Settings, k.Proof)
	switch {
	case errors.Is(err, account.ErrKeyTaken), errors.Is(err, account.ErrKeyHash), account.IsRefused(err):
		result.keysLeft++
		result.remark("token", k.ID, k.Settings.Name, "it is left out: "+oneLine(err.Error()), "make a key for it with `tollgate key create`")
		return nil
	case err != nil:
		return err
	}
	result.keys++
	return addItemTx(tx, w.plan.Name, kindKey, k.ID, item{mark: k.Proof.Hash, object: key.ID})
}
