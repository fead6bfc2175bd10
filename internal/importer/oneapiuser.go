package importer

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"tollgate/internal/account"
)

// status reads the status of a row. An unreadable status counts as switched off.
func (s *oneAPI) status(row record, about string) int64 {
	return s.whole(entryOf(row, about), row, "status", statusOff, "switched off")
}

// channelNumber reads a whole number of a channel.
func (s *oneAPI) channelNumber(c record, column string) int64 {
	return s.whole(entryOf(c, "channel"), c, column, 0, "0")
}

// entryOf identifies a row in remarks.
func entryOf(row record, about string) entry {
	return entry{about, row["id"], row["name"] + row["username"]}
}

// byID sorts rows by the number in their id.
func byID(a, b record) int {
	x, _ := wholeOf(a["id"])
	y, _ := wholeOf(b["id"])
	return cmp.Or(cmp.Compare(x, y), strings.Compare(a["id"], b["id"]))
}

// readUsers turns users into accounts, and their tokens into keys.
func (s *oneAPI) readUsers() {
	tokens := map[string][]record{} // by the user's id
	for _, t := range s.tables["tokens"] {
		tokens[t["user_id"]] = append(tokens[t["user_id"]], t)
	}
	users := s.tables["users"]
	slices.SortStableFunc(users, byID)
	accounts, keys := s.count("accounts"), s.count("keys")
	for _, u := range users {
		if u["deleted_at"] != "" || s.status(u, "user") == statusGone {
			delete(tokens, u["id"])
			continue
		}
		accounts.Found++
		if a, ok := s.accountOf(u); ok {
			a.Keys = s.keysOf(u, tokens[u["id"]])
			s.plan.Accounts = append(s.plan.Accounts, a)
		} else {
			accounts.Left++
			n := len(liveTokens(tokens[u["id"]]))
			keys.Found, keys.Left = keys.Found+n, keys.Left+n
		}
		delete(tokens, u["id"])
	}
	for _, user := range slices.Sorted(maps.Keys(tokens)) {
		for _, t := range liveTokens(tokens[user]) {
			keys.Found, keys.Left = keys.Found+1, keys.Left+1
			s.remark(entry{"token", t["id"], t["name"]}, "it is left out: it has no user", "")
		}
	}
	s.remarkGroups()
}

// liveTokens returns the tokens that are not deleted.
func liveTokens(tokens []record) (live []record) {
	for _, t := range tokens {
		if t["deleted_at"] == "" {
			live = append(live, t)
		}
	}
	return live
}

// accountOf turns a user into an account. It returns false if the user is left out.
func (s *oneAPI) accountOf(u record) (Customer, bool) {
	e := entry{"user", u["id"], u["username"]}
	a := Customer{ID: u["id"], Mark: u["username"], Disabled: s.status(u, "user") != statusOn,
		Opening: account.NewAccount{Name: nameOr(u["display_name"], u["username"], u["id"]), Email: u["email"]},
		Note:    fmt.Sprintf("Imported from %s: user %s (%s), group %s.", s.plan.Name, u["id"], excerpt(u["username"]), excerpt(groupOf(u)))}
	s.setEmail(&a, e)
	s.setFactor(&a, e, groupOf(u))
	if err := a.Opening.Check(); err != nil {
		s.remark(e, "it is left out: "+oneLine(err.Error()), "open an account for it by hand")
		return a, false
	}
	return a, s.setCredit(&a, e, u)
}

// nameOr returns the name of an account: the display name, followed by the user name if both differ.
func nameOr(display, name, id string) string {
	display, name = excerpt(display), excerpt(name)
	switch {
	case name == "" && display == "":
		return "user " + id
	case name == "", display == "", display == name:
		return display + strings.TrimPrefix(name, display)
	}
	return display + " (" + name + ")"
}

func groupOf(u record) string {
	return cmp.Or(strings.TrimSpace(u["group"]), defaultGroup)
}

// setEmail sets a valid email and, unless another user has the email, requests a sign-in.
func (d *draft) setEmail(a *Customer, e entry) {
	if a.Opening.Email == "" {
		return
	}
	email, err := account.ParseEmail(a.Opening.Email)
	if err != nil {
		d.remark(e, "its email is not valid and is left out", "")
		a.Opening.Email = ""
		return
	}
	a.Opening.Email = email
	d.count("sign_ins").Found++
	if d.taken[email] {
		d.count("sign_ins").Left++
		d.remark(e, "it has no sign-in: another user has the same email", "add one with `tollgate user create`")
		return
	}
	d.taken[email], a.SignIn = true, true
}

// setFactor sets the price factor of an account to the ratio of its group.
func (s *oneAPI) setFactor(a *Customer, e entry, group string) {
	ratio := s.ratioOf(group)
	if ratio.Cmp(whole(1)) == 0 {
		return
	}
	factor, ok := factorOf(ratio)
	if !ok {
		s.remark(e, "the ratio of its group "+excerpt(group)+" is not exactly representable as a price factor: its factor is "+factor.String(),
			"change it with `tollgate account change --price-factor`")
	}
	a.Opening.Factor = &factor
}

// ratioOf returns the ratio of a group, or 1 if the settings have no ratio for the group.
func (s *oneAPI) ratioOf(group string) *big.Rat {
	return cmp.Or(s.prices.group[group], whole(1))
}

// setCredit credits the rest of a user's quota, and reports whether the account can have this balance. For
// the root user, a quota above maxRootQuota means no limit and is not credited.
func (s *oneAPI) setCredit(a *Customer, e entry, u record) bool {
	usd := s.prices.usd(s.whole(e, u, "quota", 0, "0"))
	if s.whole(e, u, "role", 0, "0") == roleRoot && usd.Cmp(whole(maxRootQuota)) > 0 {
		s.remark(e, "its quota means no limit and is not carried over: its balance is 0", "credit it with `tollgate account credit`")
		return true
	}
	credit, ok := amountOf(usd)
	if !ok {
		s.remark(e, "it is left out: its quota is more than an account can have", "open an account for it by hand")
		return false
	}
	a.Credit = credit
	return true
}

// keysOf turns tokens into keys.
func (s *oneAPI) keysOf(u record, tokens []record) (keys []OldKey) {
	count := s.count("keys")
	for _, t := range liveTokens(tokens) {
		count.Found++
		e := entry{"token", t["id"], t["name"]}
		proof, err := account.ProofOf("sk-" + strings.TrimSpace(t["key"]))
		if err != nil {
			count.Left++
			s.remark(e, "it is left out: "+err.Error(), "make a key for it with `tollgate key create`")
			continue
		}
		k := OldKey{ID: t["id"], Proof: proof, Settings: account.KeySettings{Name: excerpt(t["name"])}}
		k.Settings.Disabled = s.status(t, "token") == statusOff
		s.setLimit(&k, e, t)
		s.setExpiry(&k, e, t)
		s.setModels(&k, e, t, groupOf(u))
		s.setAddresses(&k, e, t)
		keys = append(keys, k)
	}
	return keys
}

// setLimit sets the total limit of a key to the remaining quota of its token.
func (s *oneAPI) setLimit(k *OldKey, e entry, t record) {
	if t.flag("unlimited_quota") {
		return
	}
	limit, ok := amountOf(s.prices.usd(max(s.whole(e, t, "remain_quota", 0, "0"), 0)))
	if !ok {
		s.remark(e, "its limit is more than any account can spend, and is left out", "")
		return
	}
	k.Settings.TotalLimit = &limit
}

// setExpiry disables an expired key.
func (s *oneAPI) setExpiry(k *OldKey, e entry, t record) {
	until := s.whole(e, t, "expired_time", 1, "expired")
	switch {
	case s.status(t, "token") == statusGone, until > 0 && until < s.now.Unix():
		k.Settings.Disabled = true
		s.remark(e, "it has expired: its key is disabled", "")
	case until > 0:
		s.remarkExpiry(e, time.Unix(until, 0))
	}
}

// remarkExpiry adds a remark about a token with an expiry time, because keys do not expire here.
func (n *notes) remarkExpiry(e entry, at time.Time) {
	n.remark(e, "it expires at "+at.UTC().Format(time.RFC3339)+"; its key does not", "disable the key then with `tollgate key disable`")
}

// setModels allows a key the models that both its token and its group allow.
func (s *oneAPI) setModels(k *OldKey, e entry, t record, group string) {
	tokenModels := t.list("models", ",")
	if s.plan.Program == NewAPI {
		tokenModels = nil
		if t.flag("model_limits_enabled") {
			tokenModels = t.list("model_limits", ",")
		}
		if tokenGroup := strings.TrimSpace(t["group"]); tokenGroup != "" && tokenGroup != group {
			if tokenGroup == "auto" || s.ratioOf(tokenGroup).Cmp(s.ratioOf(group)) != 0 {
				s.remark(e, "its own group "+excerpt(tokenGroup)+" has another price: the key pays the prices of its account",
					"see --prices of `tollgate account change`")
			}
			group = tokenGroup
		}
	}
	allowed, limited := s.allowed(tokenModels, group)
	if !limited {
		return
	}
	s.limitModels(k, e, allowed)
}

// allowed returns the models that both a token and its group allow. limited is false if both allow
// every model.
func (s *oneAPI) allowed(tokenModels []string, group string) (models []string, limited bool) {
	if group == "auto" {
		return tokenModels, len(tokenModels) > 0
	}
	served := s.groups[group]
	restricted := len(served) < len(s.allGroupModels())
	out := []string{}
	switch {
	case len(tokenModels) > 0:
		for _, model := range tokenModels {
			if !restricted || served[model] || !s.has(model) {
				out = append(out, model)
			}
		}
	case restricted:
		out = append(out, slices.Sorted(maps.Keys(served))...) // not nil, because nil allows all
	default:
		return nil, false
	}
	return out, true
}

// allGroupModels returns the models of all groups together.
func (s *oneAPI) allGroupModels() map[string]bool {
	all := map[string]bool{}
	for _, models := range s.groups {
		maps.Copy(all, models)
	}
	return all
}

// setAddresses allows a key the addresses of its token. It leaves out an entry that is not an address,
// because such an entry allowed nobody before either. If no address remains, setAddresses disables
// the key.
func (s *oneAPI) setAddresses(k *OldKey, e entry, t record) {
	entries := t.list("subnet", ",")
	if s.plan.Program == NewAPI {
		entries = t.list("allow_ips", "\n,")
	}
	if len(entries) == 0 {
		return
	}
	var valid []string
	for _, address := range entries {
		if _, err := account.ParseAllowedIPs([]string{address}); err != nil {
			s.remark(e, "an entry in its address list is not an address and is left out", "check the address list of its key")
			continue
		}
		valid = append(valid, address)
	}
	if _, err := account.ParseAllowedIPs(valid); err != nil || len(valid) == 0 {
		k.Settings.Disabled = true
		s.remark(e, "its key is disabled: its address list is not valid", "set a list with `tollgate key change` and enable the key")
		return
	}
	k.Settings.AllowedIPs = valid
}

// remarkGroups adds remarks about groups, because tollgate has no groups.
func (s *oneAPI) remarkGroups() {
	all := len(s.allGroupModels())
	for _, group := range slices.Sorted(maps.Keys(s.groups)) {
		if len(s.groups[group]) < all {
			s.remark(entry{"group", "", group},
				"lines serve all accounts, so the keys of its users get a fixed list of its models, which does not grow with the catalog",
				"change the lists with `tollgate key change` when you add models")
		}
	}
	if len(s.groups) > 1 {
		s.remark(entry{"group", "", ""}, "a channel for some groups becomes a line for all accounts whose keys are allowed its models", "")
	}
}
