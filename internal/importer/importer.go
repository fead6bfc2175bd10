// Package importer owns the way in from other gateways: what their databases and
// files hold, in our words, and how it becomes a catalog and accounts.
//
// Invariants:
//   - A source is only read.
//   - What is not carried over, or not as it was, is told; nothing is left out in
//     silence. Where a number has no exact counterpart it is rounded in the account's
//     favour.
//   - An entry of a source becomes one thing here, however often it is imported: what
//     it became is written in the transaction that made it.
//   - A secret is in no report, error or log; a credential goes into a file of its own
//     that its owner alone can read.
//   - A dry run takes the same steps and undoes each.
package importer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/money"
)

// Program is a gateway that things are imported from.
type Program string

// The programs.
const (
	OneAPI  Program = "one-api"
	NewAPI  Program = "new-api"
	LiteLLM Program = "litellm"
)

// Options say what to import, and how.
type Options struct {
	Program Program
	// Source is the database; see store.OpenForeign. LiteLLM may have none.
	Source string
	// Name tells sources apart of which several are imported; empty: the program's.
	Name string
	// Config is LiteLLM's config.yaml; empty: none.
	Config string
	// Settings is a file with the answer of GET /api/option/ of one-api or new-api, for
	// what their databases leave to the program; empty: none.
	Settings string
	// Models is a file in the form of LiteLLM's model_prices_and_context_window.json:
	// limits of models, and prices where the source has none; empty: none.
	Models string
	// Secrets is the folder for credentials of lines.
	Secrets string
	// Unlimited is what an account begins with that has no budget at LiteLLM.
	Unlimited money.Amount
	// Now is the time by which keys have expired.
	Now time.Time
	// Providers are the adapters that lines may use.
	Providers map[string]catalog.Provider
}

// Contents are what a source holds, as it will be here.
type Contents struct {
	Program  Program
	Name     string
	Document *catalog.Document
	Secrets  []Secret
	Accounts []Customer
	notes
}

// Secret is a line's credential and the file that it goes to.
type Secret struct{ Path, Value string }

// Customer is a customer of a source.
type Customer struct {
	ID       string // what identifies it there
	Mark     string // what shows that it is still the same
	Opening  account.Opening
	Note     string // for operators
	Disabled bool
	SignIn   bool // its email signs in to the console, once a link has set a password
	Credit   money.Amount
	Keys     []OldKey
}

// OldKey is a key of a source.
type OldKey struct {
	ID       string
	Settings account.KeySettings
	Proof    account.Proof
}

// maxName bounds the name of a source in bytes: it stands in notes of accounts.
const maxName = 60

// Read reads a source and plans what becomes of it. Errors are of what cannot be
// read: a file, a database, a table that every version of the program has.
func Read(ctx context.Context, o Options) (*Contents, error) {
	p := &Contents{Program: o.Program, Name: o.Name}
	if p.Name == "" {
		p.Name = string(o.Program)
	}
	if len(p.Name) > maxName || p.Name != oneLine(p.Name) {
		return nil, fmt.Errorf("the name of the source must be one line of at most %d bytes", maxName)
	}
	known, err := readModels(o.Models)
	if err != nil {
		return nil, err
	}
	draft := newDraft(&p.notes, known, o.Secrets)
	for _, what := range []string{"models", "lines", "accounts", "keys", "sign_ins"} {
		p.count(what)
	}
	switch o.Program {
	case OneAPI, NewAPI:
		err = readOneAPI(ctx, o, p, draft)
	case LiteLLM:
		err = readLiteLLM(ctx, o, p, draft)
	default:
		err = fmt.Errorf("there is no import from %q", o.Program)
	}
	if err != nil {
		return nil, err
	}
	p.Document, p.Secrets, err = draft.document(o.Providers)
	return p, err
}

// count returns the entry of a thing, made where there is none.
func (n *notes) count(what string) *Counted {
	i := slices.IndexFunc(n.Counts, func(c *Counted) bool { return c.What == what })
	if i < 0 {
		i = len(n.Counts)
		n.Counts = append(n.Counts, &Counted{What: what})
	}
	return n.Counts[i]
}
