// Package importer owns the conversion of other gateways' databases and files to a catalog and
// accounts.
//
// Invariants:
//   - A source is only read.
//   - The report lists everything that was changed or left out. Numbers without an exact
//     counterpart are rounded in the account's favour.
//   - An entry is imported once, however often the import runs: the transaction that creates an
//     account or key also records its entry.
//   - Reports, errors and logs contain no secret. Each credential has its own file, readable only
//     by its owner.
//   - A dry run takes the same steps and rolls back each transaction.
package importer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/money"
)

// Program is a gateway that tollgate can import from.
type Program string

// The programs.
const (
	OneAPI  Program = "one-api"
	NewAPI  Program = "new-api"
	LiteLLM Program = "litellm"
)

// Options configures Read.
type Options struct {
	Program Program
	// Source is the database; see store.OpenForeign. LiteLLM may have none.
	Source string
	// Name distinguishes several sources of one program. The default is the program.
	Name string
	// Config is the path of LiteLLM's config.yaml, or empty.
	Config string
	// Settings is the path of a file with the answer of GET /api/option/ of one-api or new-api, or
	// empty. Their databases lack settings with default values.
	Settings string
	// Models is the path of LiteLLM's model_prices_and_context_window.json, or empty. It adds
	// limits and missing prices of models.
	Models string
	// Secrets is the folder for the credentials of lines.
	Secrets string
	// Unlimited is the opening balance of an account without a budget at LiteLLM.
	Unlimited money.Amount
	// Now decides which keys have expired.
	Now time.Time
	// Providers are the adapters that lines may use.
	Providers map[string]catalog.Provider
}

// Contents is the data of a source, converted to accounts, keys and a catalog.
type Contents struct {
	Program  Program
	Name     string
	Document *catalog.Document // nil if there are no lines
	Secrets  []Secret
	Accounts []Customer
	notes
}

// Secret is the credential of a line and the path of its file.
type Secret struct{ Path, Value string }

// Customer is an account to create, with its keys.
type Customer struct {
	ID       string // its identifier in the source
	Mark     string // detects another customer with the same ID
	Opening  account.NewAccount
	Note     string // for operators
	Disabled bool
	SignIn   bool // the email gets a console login without a password
	Credit   money.Amount
	Keys     []OldKey
}

// OldKey is a key to create.
type OldKey struct {
	ID       string
	Settings account.KeySettings
	Proof    account.Proof
}

// maxName is the maximum length in bytes of the name of a source.
const maxName = 60

// Read reads and converts a source. It returns an error if a file, the database or a required table
// cannot be read.
func Read(ctx context.Context, o Options) (*Contents, error) {
	p := &Contents{Program: o.Program, Name: cmp.Or(o.Name, string(o.Program))}
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

// count returns the counter with the name what, and creates it if necessary.
func (n *notes) count(what string) *KindCount {
	i := slices.IndexFunc(n.Counts, func(c *KindCount) bool { return c.What == what })
	if i < 0 {
		i = len(n.Counts)
		n.Counts = append(n.Counts, &KindCount{What: what})
	}
	return n.Counts[i]
}
