package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/chat"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/ledger"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/responses"
)

// maxChecks bounds the checks of one request: with the cached key, with the key from the database,
// and again after each change of the key before admission.
const maxChecks = 5

// request is a chat request of any form.
type request interface {
	wire.Request
	Model() (string, error)
	Check() error
	CheckAddresses(check func(address string) error) error
}

// chatEndpoint is a chat endpoint: its form and the decoder of its bodies.
type chatEndpoint struct {
	form      wire.Form
	parse     func(body []byte) (request, error)
	stores    bool // the endpoint stores answers
	continues bool // the endpoint continues stored answers
}

// chatCompletions answers POST /v1/chat/completions.
func (s *server) chatCompletions(x *apiRequest) error {
	return s.answerChat(x, chatEndpoint{form: wire.FormChat, parse: func(body []byte) (request, error) { return completions.Open(body) }})
}

// responses answers POST /v1/responses.
func (s *server) responses(x *apiRequest) error {
	return s.answerChat(x, chatEndpoint{form: wire.FormResponses, stores: true, continues: true,
		parse: func(body []byte) (request, error) { return responses.Open(body) }})
}

// answerChat validates a chat request and sends it to the conductor.
func (s *server) answerChat(x *apiRequest, endpoint chatEndpoint) error {
	return s.answer(x, func() (func() error, error) {
		call, err := s.checkChat(x, endpoint)
		return func() error { return s.complete(x, call) }, err
	})
}

// answer validates a request with check, and then calls the function returned by check. It repeats
// both if the key has changed meanwhile.
func (s *server) answer(x *apiRequest, check func() (run func() error, err error)) error {
	var err error
	for range maxChecks {
		var run func() error
		if run, err = check(); err == nil {
			x.loggedByLedger = true
			err = run()
			if !errors.Is(err, ledger.ErrKeyChanged) {
				return err
			}
			x.loggedByLedger = false
		} else if x.fresh || httpapi.IsInterrupted(err) {
			return err
		}
		// A rejection with a cached key is not final, because the key may have changed.
		if err := s.authenticate(x, true); err != nil {
			return err
		}
	}
	return fault.TryAgain(err)
}

// complete sends an accepted request to the conductor.
func (s *server) complete(x *apiRequest, call chat.AcceptedRequest) error {
	defer s.giveImages(&call)()
	return withClientParam(call.Body, s.Chat.Complete(x.Request.Context(), x, call))
}

// checkChat validates body, model and fields of a chat request in the order of ARCHITECTURE.md,
// Order of checks.
func (s *server) checkChat(x *apiRequest, endpoint chatEndpoint) (chat.AcceptedRequest, error) {
	var none chat.AcceptedRequest
	body, err := x.Body(s.MaxBody)
	if err != nil {
		return none, err
	}
	request, err := endpoint.parse(body)
	if err != nil {
		return none, err
	}
	if x.model, err = request.Model(); err != nil {
		return none, err
	}
	snapshot := s.Catalog.Current()
	model, err := x.choose(snapshot, endpoint.form, func(m *catalog.Model) bool { return m.Supports(endpoint.form) })
	if err != nil {
		return none, err
	}
	if !endpoint.continues {
		return s.acceptChat(x, endpoint.form, request, snapshot, model)
	}
	stored, err := s.openStored(x, request.(*responses.Request))
	if err != nil {
		return none, err
	}
	call, err := s.acceptChat(x, endpoint.form, stored.Request, snapshot, model)
	if err != nil {
		return none, withClientParam(stored.Request, err)
	}
	if endpoint.stores && s.storesAnswer(&stored) {
		call.Store = func(ctx context.Context, answer []byte) { s.storeAnswer(ctx, stored, answer, &call.Admission) }
	}
	return call, nil
}

// acceptChat checks the fields of a chat request.
func (s *server) acceptChat(x *apiRequest, form wire.Form, request request, snapshot *catalog.Snapshot, model *catalog.Model) (
	chat.AcceptedRequest, error) {
	var none chat.AcceptedRequest
	if err := request.Check(); err != nil {
		return none, err
	}
	if err := x.allowsCalled(snapshot, model, request.Params().ModelCalls); err != nil {
		return none, err
	}
	if err := request.CheckAddresses(s.Guard.CheckContent); err != nil {
		return none, err
	}
	if name := session(x.Request.Header); name != "" {
		request.Params().SetConversation(name)
	}
	header, dropped := forwardedHeaders(x.Request.Header, form, model)
	return chat.AcceptedRequest{
		Admission: x.admission(model),
		Form:      form, Snapshot: snapshot, Model: model, Body: request, Header: header, DroppedFlags: dropped, Span: x.Span,
	}, nil
}

// admission returns the caller's part of an admission for a model.
func (x *apiRequest) admission(m *catalog.Model) ledger.Admission {
	return ledger.Admission{
		Request: x.ID, Account: x.caller.Account, Key: x.caller.Key, KeyVersion: x.caller.Version,
		Endpoint: x.Endpoint(), Factor: x.caller.Prices.FactorOf(m.ID), Received: x.Received,
	}
}

// session returns the name that an agent has given to its conversation, or "".
func session(h http.Header) string {
	if name := h.Get("X-Session-Affinity"); name != "" {
		return name
	}
	return h.Get("X-Session-Id")
}

// betaFlags is the header with the flags of features that a client of the messages form requests.
const betaFlags = "Anthropic-Beta"

// forwardedHeaders returns the headers to forward to a line of the client's form, and the names of
// dropped flags for x-tollgate-ignored. A flag is dropped if it raises a limit of the model.
func forwardedHeaders(h http.Header, form wire.Form, model *catalog.Model) (out http.Header, dropped []string) {
	if form != wire.FormMessages {
		return nil, nil
	}
	out = http.Header{}
	if values := h.Values("Anthropic-Version"); len(values) > 0 {
		out["Anthropic-Version"] = values
	}
	flags, dropped := allowedFlags(h.Values(betaFlags), model)
	if len(flags) > 0 {
		out[betaFlags] = flags
	}
	return out, dropped
}

// allowedFlags separates the flags in the values of anthropic-beta. remaining has the values without
// the dropped flags.
func allowedFlags(values []string, model *catalog.Model) (remaining, dropped []string) {
	for _, value := range values {
		flags, allowed := strings.Split(value, ","), []string(nil)
		for _, flag := range flags {
			if model.AllowsFlag(flag) {
				allowed = append(allowed, flag)
			} else {
				dropped = append(dropped, "anthropic-beta:"+strings.TrimSpace(flag))
			}
		}
		switch {
		case len(allowed) == len(flags):
			remaining = append(remaining, value)
		case len(allowed) > 0:
			remaining = append(remaining, strings.Join(allowed, ","))
		}
	}
	return remaining, dropped
}

// choose returns the requested model if it fits the endpoint, is open, and is allowed for the key.
// form is the endpoint's form; it determines the errors.
func (x *apiRequest) choose(snapshot *catalog.Snapshot, form wire.Form, fits func(*catalog.Model) bool) (*catalog.Model, error) {
	if err := x.allowsSandbox(snapshot, x.model, form); err != nil {
		return nil, err
	}
	model, err := findModel(snapshot, x.model, form, fits)
	if err != nil {
		return nil, err
	}
	return model, x.allows("model", model.ID)
}

// allowsCalled rejects a request whose provider may call a model outside the key's allowlist.
// Models without a price are rejected later, before the hold.
func (x *apiRequest) allowsCalled(snapshot *catalog.Snapshot, model *catalog.Model, calls []wire.ModelCall) error {
	called, _ := snapshot.CalledModels(model, calls)
	for _, call := range called {
		if err := x.allows(call.Param, call.Model.ID); err != nil {
			return err
		}
		if x.hides(snapshot, call.Model.ID) {
			return sandboxError(fault.ModelNotFound, call.Param, call.Model.ID)
		}
	}
	return nil
}

// hides reports whether model is a sandbox model that the caller may not use.
func (x *apiRequest) hides(snapshot *catalog.Snapshot, model string) bool {
	return snapshot.HidesSandbox(model, x.caller.Test, x.caller.AllowedModels)
}

// allowsSandbox returns the form's error for an unknown model if model is a sandbox model that the
// caller may not use.
func (x *apiRequest) allowsSandbox(snapshot *catalog.Snapshot, model string, form wire.Form) error {
	if !x.hides(snapshot, model) {
		return nil
	}
	return sandboxError(unknownCode(form), "model", model)
}

// sandboxError returns the error for a sandbox model that the caller may not use.
func sandboxError(code fault.Code, param, model string) error {
	return fault.At(code, param, "The model %s is a sandbox model, whose answers are made up, so this key may not use it. "+
		"The operator can add it to the key's allowed models, or mark the account as test.", fault.Excerpt(model))
}

// allows rejects a model outside the key's allowlist. param names the field with the model.
func (x *apiRequest) allows(param, model string) error {
	if x.caller.AllowsModel(model) {
		return nil
	}
	return fault.At(fault.PermissionDenied, param,
		"This API key may not use the model %s. Add it to the key's allowed models or use another key.", fault.Excerpt(model))
}

// findModel returns a model that fits an endpoint and is open.
func findModel(snapshot *catalog.Snapshot, name string, form wire.Form, fits func(*catalog.Model) bool) (*catalog.Model, error) {
	model, known := snapshot.Model(name)
	if !known {
		return nil, unknownModel(form, "There is no model %q.", fault.Excerpt(name))
	}
	if !fits(model) {
		return nil, unknownModel(form, "The model %s cannot be used on this endpoint, but at "+
			strings.Join(offer.Endpoints(model), " and ")+".", model.ID)
	}
	switch model.State {
	case catalog.StateRetired:
		return nil, fault.At(fault.ModelDisabled, "model", "The model %s was retired. Choose another one from GET %s.", model.ID, modelList(form))
	case catalog.StateComingSoon:
		return nil, fault.At(fault.ModelComingSoon, "model", "The model %s is announced but not open for calls yet.", model.ID)
	case catalog.StateMaintenance:
		return nil, fault.At(fault.ModelMaintenance, "model",
			"The model %s is under maintenance. You were not charged; please try again later.", model.ID)
	}
	return model, nil
}

// modelList returns the path of the model list for a form.
func modelList(form wire.Form) string {
	switch form {
	case wire.FormMessages:
		return "/native/v1/models"
	case wire.FormGemini:
		return "/v1beta/models"
	}
	return "/v1/models"
}

// unknownModel returns the error for a model that does not exist or is not on the endpoint: 404 for
// the messages and Gemini forms (interface.md, Endpoints), 400 otherwise.
func unknownModel(form wire.Form, what, name string) error {
	return fault.At(unknownCode(form), "model", what+" GET %s lists the models that you can use.", name, modelList(form))
}

// unknownCode returns the code of an unknown model.
func unknownCode(form wire.Form) fault.Code {
	if form == wire.FormMessages || form == wire.FormGemini {
		return fault.NotFound
	}
	return fault.ModelNotFound
}
