package main

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/app"
)

// Limits to keep a completion fast.
const (
	completionTimeout = 2 * time.Second
	maxIDs            = 200
	maxKeyAccounts    = 50 // accounts with keys among the completions
)

// entry is an account, a key or a line.
type entry struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Hint     string `json:"hint"`
	Provider string `json:"provider"`
}

// ids returns the matching ids for an argument, read from the database of the settings. If
// the database is missing or slow, ids returns nil, because a completion shows no errors.
func (p *process) ids(l partialLine) []candidate {
	ctx, cancel := context.WithTimeout(p.ctx, completionTimeout)
	defer cancel()
	p.config = cmp.Or(l.flags["config"], p.config)
	p.flags.set(l.flags)
	settings, err := p.settings()
	if err != nil {
		return nil
	}
	operator, err := app.OpenOperator(ctx, settings)
	if err != nil {
		return nil
	}
	defer func() { _ = operator.Close() }() // there were only reads
	read := func(path string, query url.Values) (body listing) {
		answer, err := operator.Do(ctx, app.OperatorRequest{Method: http.MethodGet, Path: path + "?" + query.Encode()})
		if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &body) != nil {
			return listing{}
		}
		return body
	}
	return l.matching(l.idsFor(read))
}

// listing is a list of the operator API, or the catalog.
type listing struct {
	Data  []entry `json:"data"`
	Lines []entry `json:"lines"`
}

// idsFor reads the ids for the argument.
func (l partialLine) idsFor(read func(path string, query url.Values) listing) []candidate {
	var entries []entry
	switch l.argument {
	case "account":
		query := url.Values{"limit": {strconv.Itoa(maxIDs)}}
		if strings.HasPrefix(l.last, "acct_") {
			query.Set("after", l.last) // ids are sorted, so the matching ids follow
		}
		entries = read("/accounts", query).Data
	case "key":
		for _, owner := range read("/accounts", url.Values{"limit": {strconv.Itoa(maxKeyAccounts)}}).Data {
			if len(entries) >= maxIDs {
				break
			}
			entries = append(entries, read("/accounts/"+owner.ID+"/keys", url.Values{"limit": {strconv.Itoa(maxIDs)}}).Data...)
		}
	case "line":
		entries = read("/catalog", nil).Lines
	}
	candidates := make([]candidate, 0, len(entries))
	for _, e := range entries {
		help := strings.Join(strings.Fields(cmp.Or(e.Name, e.Hint, e.Provider)), " ") // without tabs and line breaks
		candidates = append(candidates, candidate{e.ID, help})
	}
	return candidates
}
