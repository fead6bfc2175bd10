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

// Bounds of the ids that are offered, so that a completion is a moment's work.
const (
	completeWait = 2 * time.Second
	maxOffered   = 200
	maxOwners    = 50 // accounts whose keys are looked at
)

// offered is what completion shows of an account, a key or a line.
type offered struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Hint     string `json:"hint"`
	Provider string `json:"provider"`
}

// ids returns the ids of accounts, keys or lines that an argument may be, read from the
// database of the settings. Without one, or where it does not answer at once, there are
// none: a completion says nothing of errors.
func (p *process) ids(at place) []candidate {
	ctx, stop := context.WithTimeout(p.ctx, completeWait)
	defer stop()
	p.config = cmp.Or(at.flags["config"], p.config)
	p.flags.take(at.flags)
	settings, err := p.settings()
	if err != nil {
		return nil
	}
	operator, err := app.OpenOperator(ctx, settings)
	if err != nil {
		return nil
	}
	defer func() { _ = operator.Close() }() // nothing was written
	read := func(path string, query url.Values) (body listing) {
		answer, err := operator.Do(ctx, app.OperatorRequest{Method: http.MethodGet, Path: path + "?" + query.Encode()})
		if err != nil || answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &body) != nil {
			return listing{}
		}
		return body
	}
	return at.beginning(at.offered(read))
}

// listing is a list of the operator API, or the catalog.
type listing struct {
	Data  []offered `json:"data"`
	Lines []offered `json:"lines"`
}

// offered returns what may stand in the place, by what read brings.
func (at place) offered(read func(path string, query url.Values) listing) []candidate {
	var all []offered
	switch at.takes {
	case "account":
		query := url.Values{"limit": {strconv.Itoa(maxOffered)}}
		if strings.HasPrefix(at.last, "acct_") {
			query.Set("after", at.last) // ids sort: those that begin so come next
		}
		all = read("/accounts", query).Data
	case "key":
		for _, owner := range read("/accounts", url.Values{"limit": {strconv.Itoa(maxOwners)}}).Data {
			if len(all) >= maxOffered {
				break
			}
			all = append(all, read("/accounts/"+owner.ID+"/keys", url.Values{"limit": {strconv.Itoa(maxOffered)}}).Data...)
		}
	case "line":
		all = read("/catalog", nil).Lines
	}
	found := make([]candidate, 0, len(all))
	for _, one := range all {
		found = append(found, candidate{one.ID, oneLine(cmp.Or(one.Name, one.Hint, one.Provider))})
	}
	return found
}

// oneLine is a text without what would end a candidate.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
