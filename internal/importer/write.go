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

// keysAtOnce is how many keys one transaction makes: an account of thousands would
// keep others waiting.
const keysAtOnce = 100

// errDry undoes a transaction of a dry run.
var errDry = errors.New("dry run")

// Write makes the accounts and keys of a plan that are not there yet, each with its
// row of what it came from in one transaction, and reports. Where it is interrupted, a
// repetition makes the rest. A dry run undoes each transaction; it counts what there
// would be. Files are WriteFiles'.
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

// update runs fn in a transaction, which a dry run undoes.
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

// account makes an account with what it begins with and its first keys, then the
// others.
func (w *writer) account(ctx context.Context, a *Customer) error {
	first := a.Keys[:min(len(a.Keys), keysAtOnce)]
	var id string
	var made step
	err := w.update(ctx, func(tx *store.Tx) (err error) {
		made = step{}
		if id, err = w.accountTx(tx, a, &made); err != nil || id == "" {
			return err
		}
		return w.keysTx(tx, id, first, &made)
	})
	if err != nil {
		return err
	}
	if id == "" {
		made.keysLeft = len(a.Keys)
	}
	made.into(w)
	for rest := a.Keys[len(first):]; len(rest) > 0 && id != ""; {
		some := rest[:min(len(rest), keysAtOnce)]
		rest = rest[len(some):]
		if err := w.moreKeys(ctx, id, some); err != nil {
			return err
		}
	}
	return nil
}

// moreKeys makes keys of an account. In a dry run a new account is undone by now: its
// further keys are only looked up.
func (w *writer) moreKeys(ctx context.Context, id string, keys []OldKey) error {
	var made step
	err := w.update(ctx, func(tx *store.Tx) error {
		made = step{}
		if w.dry {
			if _, err := account.GetTx(tx, id); account.IsUnknown(err) {
				made.keys = len(keys)
				return nil
			}
		}
		return w.keysTx(tx, id, keys, &made)
	})
	if err == nil {
		made.into(w)
	}
	return err
}

// step is what one transaction did.
type step struct {
	accounts, accountsThere, accountsLeft int
	signIns, signInsThere, signInsLeft    int
	keys, keysThere, keysLeft             int
	credit                                money.Amount
	remarks                               []Remark
}

// into adds an step to the report.
func (o step) into(w *writer) {
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

// remark notes what is different about an entry.
func (o *step) remark(about, id, name, what, do string) {
	o.remarks = append(o.remarks, Remark{About: about, ID: id, Name: shown(name), What: what, Do: do})
}

// accountTx makes an account that is not there, and returns its id; empty: another
// entry has its place.
func (w *writer) accountTx(tx *store.Tx, a *Customer, made *step) (string, error) {
	there, err := itemTx(tx, w.plan.Name, kindAccount, a.ID)
	if err != nil {
		return "", err
	}
	switch {
	case there.object != "" && there.mark != a.Mark:
		made.accountsLeft++
		if a.SignIn {
			made.signInsLeft++
		}
		made.remark("user", a.ID, a.Mark, "it is left out: an import before had "+shown(there.mark)+" in its place",
			"if this is another database, give it a --name of its own")
		return "", nil
	case there.object != "":
		made.accountsThere++
		if a.SignIn {
			made.signInsThere++
		}
		return there.object, nil
	}
	made.accounts++
	opened, err := operator.CreateAccountTx(tx, w.by, a.Opening)
	if err != nil {
		return "", err
	}
	if err := w.furnishTx(tx, opened.ID, a, made); err != nil {
		return "", err
	}
	return opened.ID, addItemTx(tx, w.plan.Name, kindAccount, a.ID, item{mark: a.Mark, object: opened.ID})
}

// furnishTx gives a new account all but its keys.
func (w *writer) furnishTx(tx *store.Tx, id string, a *Customer, made *step) error {
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
		made.credit += a.Credit
	}
	if !a.SignIn {
		return nil
	}
	taken, err := account.EmailTakenTx(tx, a.Opening.Email)
	if err != nil {
		return err
	}
	if taken {
		made.signInsLeft++
		made.remark("user", a.ID, a.Mark, "it has no sign-in: somebody signs in with its email already", "add one with `tollgate user create`")
		return nil
	}
	made.signIns++
	_, err = operator.CreateUserTx(tx, w.by, id, account.SignIn{Email: a.Opening.Email})
	return err
}

// keysTx makes those of an account's keys that are not there.
func (w *writer) keysTx(tx *store.Tx, id string, keys []OldKey, made *step) error {
	for _, k := range keys {
		there, err := itemTx(tx, w.plan.Name, kindKey, k.ID)
		if err != nil {
			return err
		}
		if there.object != "" && there.mark == k.Proof.Hash {
			made.keysThere++
			continue
		}
		if there.object != "" {
			made.keysLeft++
			made.remark("token", k.ID, k.Settings.Name, "it is left out: an import before had another key in its place",
				"if this is another database, give it a --name of its own")
			continue
		}
		if err := w.keyTx(tx, id, k, made); err != nil {
			return err
		}
	}
	return nil
}

// keyTx makes a key.
func (w *writer) keyTx(tx *store.Tx, id string, k OldKey, made *step) error {
	key, err := operator.ImportKeyTx(tx, w.by, id, k.Settings, k.Proof)
	switch {
	case errors.Is(err, account.ErrKeyTaken), errors.Is(err, account.ErrKeyHash), account.IsRefused(err):
		made.keysLeft++
		made.remark("token", k.ID, k.Settings.Name, "it is left out: "+oneLine(err.Error()), "make a key for it with `tollgate key create`")
		return nil
	case err != nil:
		return err
	}
	made.keys++
	return addItemTx(tx, w.plan.Name, kindKey, k.ID, item{mark: k.Proof.Hash, object: key.ID})
}
