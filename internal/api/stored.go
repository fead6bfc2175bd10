package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/response"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
)

// storeTimeout bounds the time to store an answer. The end of the answer waits for it.
const storeTimeout = 5 * time.Second

// storedRequest is a responses request with the stored response that it continues.
type storedRequest struct {
	*responses.Request
	previous *response.Context // nil if the request continues none
	own      []byte            // the client's own items, without those of previous
}

// openStored replaces `previous_response_id` of a responses request by the items of the stored turns,
// so that these items are checked and charged like the client's own. MaxBody bounds both together. If
// the gateway stores no responses, openStored leaves the field, and Check rejects it.
func (s *server) openStored(x *apiRequest, r *responses.Request) (stored storedRequest, err error) {
	stored.Request = r
	if s.Responses.Retention() == 0 {
		return stored, nil
	}
	id, err := r.Previous()
	if err != nil || id == "" {
		return stored, err
	}
	if stored.own, err = r.OwnItems(); err != nil {
		return stored, err
	}
	turns, err := s.earlierTurns(x, &stored, id)
	if err != nil {
		return stored, err
	}
	if stored.Request, err = r.Continue(id, joinTurns(turns, stored.previous.Size)); err != nil {
		f := fault.Of(err) // the client's own part of the body is valid
		return stored, fault.At(f.Code, previousParam, "The stored conversation of `{param}` cannot be continued: %s", f.Message())
	}
	return stored, nil
}

// previousParam is the field that names the response to continue.
const previousParam = "previous_response_id"

// earlierTurns returns the turns of the response id, and sets stored.previous.
func (s *server) earlierTurns(x *apiRequest, stored *storedRequest, id string) ([]response.StoredTurn, error) {
	ctx, done := x.DetachedContext(readTimeout)
	defer done()
	var err error
	stored.previous, err = s.Responses.Find(ctx, x.caller.Account, id)
	if errors.Is(err, response.ErrNotFound) {
		return nil, fault.At(fault.InvalidRequest, previousParam, "There is no stored response %q: it was not stored, was deleted, or is "+
			"older than %s. Send the whole conversation in `input` instead, without `{param}`.", fault.Excerpt(id), s.Responses.Retention())
	}
	if err != nil {
		return nil, fault.TryAgain(err)
	}
	if stored.previous.Size+stored.Size() > s.MaxBody {
		return nil, fault.At(fault.RequestTooLarge, previousParam, "The request is larger than the %s allowed here, together with the "+
			"conversation stored for `{param}`. Begin a new conversation, or send a shorter one in `input`.", fault.Bytes(s.MaxBody))
	}
	if err := x.Memory.Grow(stored.previous.Size); err != nil {
		return nil, err
	}
	turns, err := s.Responses.Turns(ctx, stored.previous)
	if errors.Is(err, response.ErrIncomplete) {
		return nil, fault.At(fault.InvalidRequest, previousParam, "The beginning of the conversation before %q is no longer stored, because "+
			"the account has stored too much. Send the whole conversation in `input` instead, without `{param}`.", fault.Excerpt(id))
	}
	if err != nil {
		return nil, fault.TryAgain(err)
	}
	return turns, nil
}

// joinTurns returns the items of turns, about size bytes, as a JSON array without its brackets.
func joinTurns(turns []response.StoredTurn, size int64) []byte {
	all := make([]byte, 0, size+int64(2*len(turns)))
	for _, t := range turns {
		for _, items := range [...][]byte{t.Input, t.Output} {
			if len(items) == 0 {
				continue
			}
			if len(all) > 0 {
				all = append(all, ',')
			}
			all = append(all, items...)
		}
	}
	return all
}

// storesAnswer reports whether the answer will be stored, and prepares the request for it.
func (s *server) storesAnswer(stored *storedRequest) bool {
	stored.Stored = s.Responses.Retention() > 0 && stored.AsksStore()
	return stored.Stored
}

// storeAnswer stores the answer to a request. After an error, the client still gets the answer, but
// cannot continue it by its id.
func (s *server) storeAnswer(ctx context.Context, stored storedRequest, answer []byte, a *ledger.Admission) {
	err := errors.New("the answer is not JSON")
	if object, output, ok := responses.SplitAnswer(bytes.ToValidUTF8(answer, []byte("\uFFFD"))); ok {
		if stored.previous == nil {
			stored.own, _ = stored.OwnItems() // Check has accepted the input
		}
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		err = s.Responses.Save(ctx, &response.NewTurn{
			ID: responses.ID(a.Request), Account: a.Account, Previous: stored.previous, Input: stored.own, Output: output, Object: object,
		})
	}
	if err != nil {
		s.Log.Warn("api: an answer could not be stored", "request", a.Request, "account", a.Account, "error", err)
	}
}

// withClientParam returns err with the field's path in the client's body. In a continued conversation, the
// path of err counts the stored items too.
func withClientParam(body wire.Request, err error) error {
	var f *fault.Error
	if r, ok := body.(*responses.Request); ok && errors.As(err, &f) {
		f.Param = r.ClientParam(f.Param)
	}
	return err
}

// errNoResponse returns the error for a response that the account does not have.
func errNoResponse(id string) error {
	return fault.New(fault.NotFound, "There is no stored response %q: it was not stored, was deleted, or its time is over.", fault.Excerpt(id))
}

// readError returns the error for a failed read or change of a response.
func readError(id string, err error) error {
	if errors.Is(err, response.ErrNotFound) {
		return errNoResponse(id)
	}
	return fault.TryAgain(err)
}

// withResponseID answers 404 for an ID that cannot exist, and calls handle otherwise. PostgreSQL
// does not accept every text as a parameter.
func withResponseID(handle func(*apiRequest) error) func(*apiRequest) error {
	return func(x *apiRequest) error {
		if !isID(x.PathID()) {
			return errNoResponse(x.PathID())
		}
		return handle(x)
	}
}

// storedResponse answers GET /v1/responses/{id}.
func (s *server) storedResponse(x *apiRequest) error {
	if stream, ok := rawjson.Boolean([]byte(x.Request.URL.Query().Get("stream"))); x.Request.URL.Query().Has("stream") && (stream || !ok) {
		return fault.At(fault.InvalidRequest, "stream", "A stored response cannot be streamed. Leave `{param}` out.")
	}
	ctx, done := x.DetachedContext(readTimeout)
	defer done()
	object, output, err := s.Responses.Answer(ctx, x.caller.Account, x.PathID())
	if err != nil {
		return readError(x.PathID(), err)
	}
	write(x, http.StatusOK, "application/json", responses.JoinAnswer(object, output).Bytes())
	return nil
}

// deleteResponse answers DELETE /v1/responses/{id}.
func (s *server) deleteResponse(x *apiRequest) error {
	ctx, done := x.DetachedContext(readTimeout)
	defer done()
	if err := s.Responses.Delete(ctx, x.caller.Account, x.PathID()); err != nil {
		return readError(x.PathID(), err)
	}
	return writeJSON(x, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{x.PathID(), "response", true})
}

// Bounds of a page of input items.
const (
	itemPage     = 20
	itemPageMost = 100
)

// inputItems answers GET /v1/responses/{id}/input_items: the items that the answer was generated from,
// with those of the turns before it.
func (s *server) inputItems(x *apiRequest) error {
	query := x.Request.URL.Query()
	limit, err := pageLimit(query, "limit", itemPage, itemPageMost)
	if err != nil {
		return err
	}
	order := query.Get("order")
	if order != "" && order != "asc" && order != "desc" {
		return fault.At(fault.InvalidRequest, "order", "`{param}` must be asc or desc.")
	}
	ctx, done := x.DetachedContext(readTimeout)
	defer done()
	found, err := s.Responses.Find(ctx, x.caller.Account, x.PathID())
	if err != nil {
		return readError(x.PathID(), err)
	}
	if err := x.Memory.Grow(found.Size); err != nil {
		return err
	}
	turns, err := s.Responses.Turns(ctx, found)
	if errors.Is(err, response.ErrIncomplete) {
		return errNoResponse(x.PathID())
	}
	if err != nil {
		return fault.TryAgain(err)
	}
	turns[len(turns)-1].Output = nil
	items := responses.ListedItems(func(yield func(id string, items []byte) bool) {
		for _, t := range turns {
			if !yield(t.ID+"_i", t.Input) || !yield(t.ID+"_o", t.Output) {
				return
			}
		}
	})
	if order != "asc" {
		slices.Reverse(items)
	}
	after, given, err := cursor(query, "after", items, func(item responses.ListedItem) string { return item.ID },
		"The response has no input item %q to continue from in `{param}`.")
	switch {
	case err != nil:
		return err
	case given:
		items = items[after+1:]
	}
	write(x, http.StatusOK, "application/json", itemList(items[:min(limit, len(items))], len(items) > limit))
	return nil
}

// itemList returns a page of items.
func itemList(items []responses.ListedItem, more bool) []byte {
	list, first, last := []byte(`{"object":"list","data":[`), []byte("null"), []byte("null")
	for i, item := range items {
		last = rawjson.Quote(item.ID)
		if i == 0 {
			first = last
		} else {
			list = append(list, ',')
		}
		list = append(list, item.JSON...)
	}
	list = rawjson.Put(list, `],"first_id":`, first, "")
	list = rawjson.Put(list, `,"last_id":`, last, "")
	return append(strconv.AppendBool(append(list, `,"has_more":`...), more), '}')
}

// countInput answers POST /v1/responses/input_tokens. Counts are free, and each account has a limit for
// them.
func (s *server) countInput(x *apiRequest) error {
	call, err := s.checkChat(x, chatEndpoint{form: wire.FormResponses, continues: true,
		parse: func(body []byte) (request, error) { return responses.Open(body) }})
	if err != nil {
		return err
	}
	n, err := s.count(x, call)
	if err != nil {
		return withClientParam(call.Body, err)
	}
	return writeJSON(x, struct {
		Object string `json:"object"`
		Tokens int64  `json:"input_tokens"`
	}{"response.input_tokens", n})
}
