package api

import (
	"net/http"
	"net/url"
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
func (s *server) messages(x *apiRequest) error {
	return s.answerChat(x, chatEndpoint{form: wire.FormMessages, parse: func(body []byte) (request, error) { return messages.Open(body) }})
}

// countRequest is a messages request for a token count. It needs no max_tokens.
type countRequest struct{ *messages.Request }

// Check implements request.
func (c countRequest) Check() error { return c.CheckCount() }

// maxCountAccounts bounds the accounts in the rate limiter of token counts.
const maxCountAccounts = 10_000

// checkCountRate rejects a token count above the account's rate: counts are free, but providers
// limit them.
func (s *server) checkCountRate(account string) error {
	if s.counts == nil || s.counts.Take(account, 1) {
		return nil
	}
	return fault.New(fault.RateLimitExceeded,
		"The account has asked for more than %d counts of tokens within a minute. Wait a few seconds, or count fewer requests.", s.CountRate)
}

// countTokens answers POST /native/v1/messages/count_tokens. Counts are free, and each account has a
// limit for them.
func (s *server) countTokens(x *apiRequest) error {
	accepted, err := s.checkChat(x, chatEndpoint{form: wire.FormMessages, parse: func(body []byte) (request, error) {
		r, err := messages.Open(body)
		return countRequest{r}, err
	}})
	if err != nil {
		return err
	}
	accepted.Body = accepted.Body.(countRequest).Request
	n, err := s.count(x, accepted)
	if err != nil {
		return err
	}
	return writeJSON(x, struct {
		Tokens int64 `json:"input_tokens"`
	}{n})
}

// count returns the number of tokens in the prompt of an accepted request.
func (s *server) count(x *apiRequest, accepted chat.AcceptedRequest) (int64, error) {
	if err := s.checkCountRate(accepted.Account); err != nil {
		return 0, err
	}
	defer s.giveImages(&accepted)()
	n, ignored, err := s.Chat.CountTokens(x.Request.Context(), accepted)
	if err == nil && ignored != "" {
		x.Header().Set(call.IgnoredHeader, ignored)
	}
	return n, err
}

// Bounds of a page of GET /native/v1/models.
const (
	defaultNativePage = 20
	maxNativePage     = 1000
)

// nativeModels answers GET /native/v1/models with a page of the listed models of the messages form, in
// the catalog's order.
func (s *server) nativeModels(x *apiRequest) error {
	query := x.Request.URL.Query()
	limit, err := pageLimit(query, "limit", defaultNativePage, maxNativePage)
	if err != nil {
		return err
	}
	snapshot := s.Catalog.Current()
	first, err := s.firstSeen(x, snapshot)
	if err != nil {
		return fault.TryAgain(err)
	}
	all := []listedModel{}
	for _, m := range snapshot.Models() {
		if x.lists(snapshot, m) && m.Supports(wire.FormMessages) {
			all = append(all, showNative(m, first[m.ID]/1000))
		}
	}
	page, more, err := paginate(query, all, limit)
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

// paginate returns the page of models before or after an entry and reports whether there is more in that
// direction.
func paginate(query url.Values, all []listedModel, limit int) (page []listedModel, more bool, err error) {
	if query.Get("before_id") != "" && query.Get("after_id") != "" {
		return nil, false, fault.At(fault.InvalidRequest, "before_id", "Give `before_id` or `after_id`, not both.")
	}
	id := func(m listedModel) string { return m.ID }
	before, hasBefore, err := cursor(query, "before_id", all, id, noModel)
	if err != nil {
		return nil, false, err
	}
	after, hasAfter, err := cursor(query, "after_id", all, id, noModel)
	switch {
	case err != nil:
		return nil, false, err
	case hasBefore:
		from := max(before-limit, 0)
		return all[from:before], from > 0, nil
	case hasAfter:
		all = all[after+1:]
	}
	return all[:min(limit, len(all))], len(all) > limit, nil
}
