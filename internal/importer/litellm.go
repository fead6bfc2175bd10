package importer

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"tollgate/internal/account"
)

// Tables of LiteLLM.
const (
	keyTable    = "LiteLLM_VerificationToken"
	userTable   = "LiteLLM_UserTable"
	teamTable   = "LiteLLM_TeamTable"
	budgetTable = "LiteLLM_BudgetTable"
	modelTable  = "LiteLLM_ProxyModelTable"
	memberTable = "LiteLLM_TeamMembership"
)

// consoleTeam is the team of keys for LiteLLM's own web pages.
const consoleTeam = "litellm-dashboard"

// liteLLM reads a source of LiteLLM.
type liteLLM struct {
	*draft
	contents  *Contents
	now       time.Time
	unlimited *big.Rat
	tables    tables
	budgets   map[string]record
	accounts  map[string]*liteAccount // by identifier
	order     []string                // identifiers of the accounts, as read
}

// liteAccount is an incomplete account with the models of its team or user.
type liteAccount struct {
	Customer
	models []string
}

// readLiteLLM plans an import of LiteLLM: of its config file, its database or both.
func readLiteLLM(ctx context.Context, o Options, c *Contents, d *draft) error {
	if o.Config == "" && o.Source == "" {
		return fmt.Errorf("name LiteLLM's config file, its database, or both")
	}
	if o.Config != "" {
		if err := readConfig(o, d); err != nil {
			return err
		}
	}
	if o.Source == "" {
		return nil
	}
	found, err := readTables(ctx, o.Source, []string{keyTable, userTable, teamTable}, []string{budgetTable, modelTable, memberTable})
	if err != nil {
		return err
	}
	unlimited := new(big.Rat).SetFrac64(int64(o.Unlimited), 1_000_000_000)
	s := liteLLM{draft: d, contents: c, now: o.Now, unlimited: unlimited, tables: found, budgets: map[string]record{},
		accounts: map[string]*liteAccount{}}
	for _, b := range found[budgetTable] {
		s.budgets[b["budget_id"]] = b
	}
	s.readOwners(teamTable, "team", "team_id", "team_alias")
	s.readOwners(userTable, "user", "user_id", "user_alias")
	s.readKeys()
	for _, id := range s.order {
		c.Accounts = append(c.Accounts, s.accounts[id].Customer)
	}
	s.remarkRest()
	return nil
}

// remarkRest remarks on data without a counterpart.
func (l *liteLLM) remarkRest() {
	if n := len(l.tables[modelTable]); n > 0 {
		l.remark(entry{"model", "", ""}, fmt.Sprintf("not carried over: models of the database, %d, which are encrypted there", n),
			"write them into a config file, and give it as --litellm-config")
	}
	for _, m := range l.tables[memberTable] {
		if m["budget_id"] != "" {
			l.remark(entry{"team", m["team_id"], m["user_id"]}, "the member's budget within the team is not carried over",
				"limit the member's keys with `tollgate key change`")
		}
	}
}

// readOwners turns teams or users into accounts.
func (l *liteLLM) readOwners(table, about, id, alias string) {
	count := l.count("accounts")
	rows := slices.Clone(l.tables[table])
	slices.SortFunc(rows, func(a, b record) int { return strings.Compare(a[id], b[id]) })
	for _, row := range rows {
		if row[id] == consoleTeam {
			continue
		}
		count.Found++
		e := entry{about, row[id], row[alias]}
		a := &liteAccount{models: row.texts("models"), Customer: Customer{ID: about + ":" + row[id], Mark: row[id], Disabled: row.flag("blocked"),
			Opening: account.NewAccount{Name: nameOr(row[alias], row[id], row[id]), Email: row["user_email"]},
			Note:    fmt.Sprintf("Imported from %s: %s %s.", l.contents.Name, about, excerpt(row[id]))}}
		l.setEmail(&a.Customer, e)
		l.setBudget(&a.Customer, e, row)
		l.remarkLimits(e, row)
		if err := a.Opening.Check(); err != nil {
			count.Left++
			l.remark(e, "it is left out: "+oneLine(err.Error()), "open an account for it by hand")
			continue
		}
		l.add(a)
	}
}

// add adds an account.
func (l *liteLLM) add(a *liteAccount) {
	l.accounts[a.ID] = a
	l.order = append(l.order, a.ID)
}

// setBudget credits the rest of a budget. Without a budget, it credits Options.Unlimited.
func (l *liteLLM) setBudget(a *Customer, e entry, row record) {
	budget, _ := l.decimal(e, row, "max_budget")
	if budget == nil {
		l.remark(e, "it has no budget there, and is prepaid here: its balance is "+l.unlimited.FloatString(2)+" USD",
			"give all of these a balance with --unlimited-usd, or single ones with `tollgate account credit`")
		a.Credit, _ = amountOf(l.unlimited)
		return
	}
	credit, ok := amountOf(l.remaining(e, budget, row))
	if !ok {
		l.remark(e, "its budget is more than an account can have: its balance is 0", "credit it with `tollgate account credit`")
		return
	}
	a.Credit = credit
	if span := row["budget_duration"]; span != "" {
		l.remark(e, "its budget was renewed every "+excerpt(span)+"; its balance is what was left of the budget", "credit the account as often")
	}
}

// remaining returns the rest of a budget, or 0 if the spent amount is unreadable.
func (l *liteLLM) remaining(e entry, budget *big.Rat, row record) *big.Rat {
	spent, readable := l.decimal(e, row, "spend")
	switch {
	case spent == nil:
		return budget
	case !readable, spent.Cmp(budget) > 0:
		return new(big.Rat)
	}
	return new(big.Rat).Sub(budget, spent)
}

// remarkLimits remarks on limits without a counterpart.
func (l *liteLLM) remarkLimits(e entry, row record) {
	limits := []string{"tpm_limit", "tpd_limit", "max_parallel_requests"}
	if e.about != "key" {
		limits = append(limits, "rpm_limit")
	}
	for _, name := range limits {
		if row[name] != "" {
			l.remark(e, "not carried over: "+name, "limit its keys with --rpm and --daily-budget-usd of `tollgate key change`")
		}
	}
	for _, name := range []string{"model_max_budget", "aliases", "budget_limits", "permissions"} {
		if text := row[name]; text != "" && text != "{}" && text != "[]" {
			l.remark(e, "not carried over: "+name, "")
		}
	}
}

// readKeys adds each key to the account of its team or user, or to an account of its own.
func (l *liteLLM) readKeys() {
	rows := slices.Clone(l.tables[keyTable])
	slices.SortFunc(rows, func(a, b record) int { return strings.Compare(a["token"], b["token"]) })
	count, own := l.count("keys"), 0
	for _, row := range rows {
		if row["team_id"] == consoleTeam {
			own++
			continue
		}
		count.Found++
		a := l.ownerOf(row)
		if a == nil {
			count.Left++
			l.remark(keyEntry(row), "it is left out: its team or user is left out", "")
			continue
		}
		a.Keys = append(a.Keys, l.keyOf(row, a))
	}
	if own > 0 {
		l.remark(entry{"key", "", ""}, fmt.Sprintf("not carried over: keys of LiteLLM's own web pages, %d", own), "")
	}
}

// keyEntry identifies a key in remarks by LiteLLM's hint.
func keyEntry(row record) entry { return entry{"key", row["key_name"], row["key_alias"]} }

// ownerOf returns the account of a key. It returns nil if the key's team was left out. A key without a team
// and without an imported user gets a new account.
func (l *liteLLM) ownerOf(row record) *liteAccount {
	switch {
	case row["team_id"] != "":
		return l.accounts["team:"+row["team_id"]]
	case row["user_id"] != "" && l.accounts["user:"+row["user_id"]] != nil:
		return l.accounts["user:"+row["user_id"]]
	}
	e := keyEntry(row)
	l.count("accounts").Found++
	a := &liteAccount{Customer: Customer{ID: "key:" + row["token"], Mark: row["token"],
		Opening: account.NewAccount{Name: nameOr(row["key_alias"], row["key_name"], "of a key")},
		Note:    fmt.Sprintf("Imported from %s: a key of no team and no user.", l.contents.Name)}}
	l.setBudget(&a.Customer, e, l.limitsOf(row))
	l.add(a)
	return a
}

// limitsOf returns a key's row. Limits missing in the row come from the row of the key's budget.
func (l *liteLLM) limitsOf(row record) record {
	budget := l.budgets[row["budget_id"]]
	if budget == nil {
		return row
	}
	out := maps.Clone(row)
	for _, name := range []string{"max_budget", "budget_duration", "rpm_limit", "tpm_limit", "max_parallel_requests"} {
		if _, own := out[name]; !own && budget[name] != "" {
			out[name] = budget[name]
		}
	}
	return out
}

// keyOf converts a key.
func (l *liteLLM) keyOf(row record, a *liteAccount) OldKey {
	row = l.limitsOf(row)
	e := keyEntry(row)
	k := OldKey{ID: row["token"], Proof: account.Proof{Hash: row["token"], Hint: hintOf(row["key_name"])},
		Settings: account.KeySettings{Name: excerpt(row["key_alias"]), Disabled: row.flag("blocked")}}
	l.setKeyBudget(&k, e, row)
	l.setRate(&k, e, row)
	l.setKeyExpiry(&k, e, row)
	l.setKeyModels(&k, e, row.texts("models"), a.models)
	l.remarkLimits(e, row)
	return k
}

// hintOf returns LiteLLM's hint of a key, or an empty string.
func hintOf(name string) string {
	if name = excerpt(name); len(name) > 12 {
		return ""
	}
	return name
}

// setKeyBudget turns a budget renewed every day into a daily budget, and the rest of any other budget
// into a total limit.
func (l *liteLLM) setKeyBudget(k *OldKey, e entry, row record) {
	budget, _ := l.decimal(e, row, "max_budget")
	if budget == nil {
		return
	}
	span := row["budget_duration"]
	if span == "1d" || span == "24h" || span == "daily" {
		if daily, ok := amountOf(budget); ok && daily >= 0 {
			k.Settings.DailyBudget = &daily
		}
		return
	}
	limit, ok := amountOf(l.remaining(e, budget, row))
	if !ok || limit < 0 {
		l.remark(e, "its budget is more than any account can spend, and is left out", "")
		return
	}
	k.Settings.TotalLimit = &limit
	if span != "" {
		l.remark(e, "its budget was renewed every "+excerpt(span)+"; its limit is what was left of the budget and is not renewed",
			"raise total_limit_usd, or set a daily budget, with `tollgate key change`")
	}
}

// maxRPM is the largest number of requests per minute of a key.
const maxRPM = 1_000_000

// setRate limits a key's requests per minute.
func (l *liteLLM) setRate(k *OldKey, e entry, row record) {
	if row["rpm_limit"] == "" {
		return
	}
	switch rpm := l.whole(e, row, "rpm_limit", 0, "0"); {
	case rpm < 1:
		k.Settings.Disabled = true
		l.remark(e, "its key is disabled: its rpm_limit allows no request", "")
	case rpm <= maxRPM:
		k.Settings.RPM = &rpm
	}
}

// setKeyExpiry disables an expired key.
func (l *liteLLM) setKeyExpiry(k *OldKey, e entry, row record) {
	text := row["expires"]
	if text == "" {
		return
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		at, err := time.Parse(layout, text)
		switch {
		case err != nil:
			continue
		case at.Before(l.now):
			k.Settings.Disabled = true
			l.remark(e, "it has expired: its key is disabled", "")
		default:
			l.remarkExpiry(e, at)
		}
		return
	}
	l.remark(e, "its expiry time cannot be read; its key does not expire", "disable the key then with `tollgate key disable`")
}

// setKeyModels allows a key the models that both the key and its account allow.
func (l *liteLLM) setKeyModels(k *OldKey, e entry, own, owner []string) {
	key, all := namedModels(own)
	accountModels, accountAll := namedModels(owner)
	switch {
	case slices.Contains(own, "no-default-models") || slices.Contains(owner, "no-default-models") && all:
		k.Settings.Disabled = true
		l.remark(e, "its key is disabled: it was allowed no models", "")
		return
	case all && accountAll:
		return
	case all:
		key = accountModels
	case !accountAll:
		key = slices.DeleteFunc(key, func(model string) bool { return !slices.Contains(accountModels, model) })
	}
	l.setAllowedModels(k, e, key)
}
