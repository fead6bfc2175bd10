package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/call"
	"tollgate/internal/chat"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/wire"
	"tollgate/internal/wire/messages"
)

// nativeKey returns the key of a /native request: x-api-key, else the Bearer token.
func nativeKey(h http.Header) string {
	if key := strings.TrimSpace(h.Get("X-Api-Key")); key != "" {
		return key
	}
	return httpapi.Bearer(h)
}

// messages answers POST /native/v1/messages.
func (d *server) messages(x *apiRequest) error {
	return d.answerChat(x, chatEndpoint{form: wire.FormMessages, parse: func(body []byte) (request, error) { return messages.Open(body) }})
}

// countRequest is a messages request for a token count. It needs no max_tokens.
type countRequest struct{ *messages.Request }

// Check implements request.
func (c countRequest) Check() error { return c.CheckCount() }

// countedAccounts bounds the accounts in the rate limiter of token counts.
const countedAccounts = 10_000

// checkCountRate rejects a token count above the account's rate: counts are free, but providers
// limit them.
func (d *server) checkCountRate(account string) error {
	if d.counts == nil || d.counts.Take(account, 1) {
		return nil
	}
	return fault.New(fault.RateLimitExceeded,
		"The account has asked for more than %d counts of tokens within a minute. Wait a few seconds, or count fewer requests.", d.CountRate)
}

// countTokens answers POST /native/v1/messages/count_tokens. Counts are free, and each account has a
// limit for them.
func (d *server) countTokens(x *apiRequest) error {
	accepted, err := d.checkChat(x, chatEndpoint{form: wire.FormMessages, parse: func(body []byte) (request, error) {
		r, err := messages.Open(body)
		return countRequest{r}, err
	}})
	if err != nil {
		return err
	}
	accepted.Body = accepted.Body.(countRequest).Request
	n, err := d.count(x, accepted)
	if err != nil {
		return err
	}
	return writeJSON(x, struct {
		Tokens int64 `json:"input_tokens"`
	}{n})
}

// count returns the number of tokens in the prompt of an accepted request.
func (d *server) count(x *apiRequest, accepted chat.AcceptedRequest) (int64, error) {
	if err := d.checkCountRate(accepted.Account); err != nil {
		return 0, err
	}
	defer d.giveImages(&accepted)()
	n, ignored, err := d.Chat.CountTokens(x.Request.Context(), accepted)
	if err == nil && ignored != "" {
		x.Header().Set(call.IgnoredHeader, ignored)
	}
	return n, err
}

// Bounds of a page of GET /native/v1/models.
const (
	nativePage     = 20
	nativePageMost = 1000
)

// nativeModels answers GET /native/v1/models: a page of the listed models of the messages form in
// the catalog's order.
func (d *server) nativeModels(x *apiRequest) error {
	query := x.Request.URL.Query()
	limit, err := pageLimit(query, "limit", nativePage, nativePageMost)
	if err != nil {
		return err
	}
	snapshot := d.Catalog.Current()
	first, err := d.firstSeen(x, snapshot)
	if err != nil {
		return fault.TryAgain(err)
	}
	var all []listedModel
	for _, m := range snapshot.Models() {
		if x.lists(snapshot, m) && m.Supports(wire.FormMessages) {
			all = append(all, showNative(m, first[m.ID]/1000))
		}
	}
	page, more, err := paginate(all, limit, query.Get("before_id"), query.Get("after_id"))
	if err != nil {
		return err
	}
	list := struct {
		Data    []listedModel `json:"data"`
		HasMore bool          `json:"has_more"`
		First   *string       `json:"first_id"`
		Last    *string       `json:"last_id"`
	}{Data: page, HasMore: more}
	if len(page) > 0 {
		list.First, list.Last = &page[0].ID, &page[len(page)-1].ID
	}
	return writeJSON(x, list)
}

// pageLimit returns the length of a page in a query's parameter: usual without one, and at most most.
func pageLimit(query url.Values, param string, usual, most int) (int, error) {
	text := query.Get(param)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fault.At(fault.InvalidRequest, param, "`{param}` must be an integer from 1 to %d.", most)
	}
	return n, nil
}

// paginate returns the page after or before an entry and reports whether there is more in that
// direction.
func paginate(all []listedModel, limit int, before, after string) (page []listedModel, more bool, err error) {
	at := func(param, id string) (int, error) {
		i := slices.IndexFunc(all, func(m listedModel) bool { return m.ID == id })
		if i < 0 {
			return 0, fault.At(fault.InvalidRequest, param, "There is no model %q to page from in `%s`.", fault.Excerpt(id), param)
		}
		return i, nil
	}
	page = append([]listedModel{}, all...)
	switch {
	case before != "" && after != "":
		return nil, false, fault.At(fault.InvalidRequest, "before_id", "Give `before_id` or `after_id`, not both.")
	case before != "":
		i, err := at("before_id", before)
		if err != nil {
			return nil, false, err
		}
		from := max(i-limit, 0)
		return page[from:i], from > 0, nil
	case after != "":
		i, err := at("after_id", after)
		if err != nil {
			return nil, false, err
		}
		page = page[i+1:]
	}
	return page[:min(limit, len(page))], len(page) > limit, nil
}
