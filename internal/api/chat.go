package api

import (
	"errors"

	"tollgate/internal/catalog"
	"tollgate/internal/chat"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/wire"
)

// judgements bounds how often a request is judged: on what is remembered of its
// key, then on what the database says, and again each time that the key was
// changed before the money was held.
const judgements = 5

// chatCompletions answers POST /v1/chat/completions.
func (d *desk) chatCompletions(x *exchange) error {
	var err error
	for range judgements {
		var call chat.Call
		if call, err = d.judgeChat(x); err == nil {
			x.handed = true
			err = d.Chat.Complete(x.r.Context(), x.w, call)
			if !errors.Is(err, ledger.ErrKeyChanged) {
				return err
			}
			x.handed = false
		} else if x.fresh {
			return err
		}
		// Memory may say yes, but a no needs the database's word: the key may
		// be gone, or allowed more by now.
		if err := d.identify(x, true); err != nil {
			return err
		}
	}
	return away(err)
}

// judgeChat judges body, model and fields of a chat-completions request, in
// the order of ARCHITECTURE.md, Order of checks.
func (d *desk) judgeChat(x *exchange) (chat.Call, error) {
	var none chat.Call
	body, err := x.body.read(x.w, x.r, d.MaxBody)
	if err != nil {
		return none, err
	}
	request, err := wire.OpenChat(body)
	if err != nil {
		return none, err
	}
	if x.model, err = request.Model(); err != nil {
		return none, err
	}
	snapshot := d.Catalog.Current()
	model, err := usable(snapshot, x.model, wire.FormChat)
	if err != nil {
		return none, err
	}
	if !x.principal.AllowsModel(model.ID) {
		return none, fault.At(fault.PermissionDenied, "model",
			"This API key may not use the model %s. Add it to the key's allowed models or use another key.", model.ID)
	}
	if err := request.Check(); err != nil {
		return none, err
	}
	return chat.Call{
		Endpoint: "/v1/chat/completions", Form: wire.FormChat,
		Request: x.request, Account: x.principal.Account, Key: x.principal.Key, KeyVersion: x.principal.Version,
		Snapshot: snapshot, Model: model, Body: request, Received: x.received,
	}, nil
}

// usable finds a model that answers in the given form and is open.
func usable(snapshot *catalog.Snapshot, name string, form wire.Form) (*catalog.Model, error) {
	model, known := snapshot.Model(name)
	if !known {
		return nil, fault.At(fault.ModelNotFound, "model",
			"There is no model %q. GET /v1/models lists the models that you can use.", shown(name))
	}
	if !model.Speaks(form) {
		return nil, fault.At(fault.ModelNotFound, "model",
			"The model %s cannot be used on this endpoint. GET /v1/models lists the models that you can use.", model.ID)
	}
	switch model.State {
	case catalog.StateRetired:
		return nil, fault.At(fault.ModelDisabled, "model", "The model %s was retired. Choose another one from GET /v1/models.", model.ID)
	case catalog.StateComingSoon:
		return nil, fault.At(fault.ModelComingSoon, "model", "The model %s is announced but not open for calls yet.", model.ID)
	case catalog.StateMaintenance:
		return nil, fault.At(fault.ModelMaintenance, "model", "The model %s is under maintenance. You were not charged; please try again later.", model.ID)
	}
	return model, nil
}
