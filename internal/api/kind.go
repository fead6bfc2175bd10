package api

import (
	"cmp"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/kind/registry"
)

// kindRoutes returns the routes of the kinds in package wire/kind.
func (d *server) kindRoutes() (routes []httpapi.Route) {
	for _, k := range registry.All() {
		for _, endpoint := range k.Endpoints {
			routes = append(routes, httpapi.Route{Pattern: "POST " + endpoint.Path, Handle: d.modelCall(func(x *apiRequest) error {
				return d.answer(x, func() (func() error, error) {
					r, err := d.checkKind(x, k, endpoint)
					return func() error { return d.Calls.Serve(x.Request.Context(), x, r) }, err
				})
			})})
		}
	}
	return routes
}

// checkKind validates body, model and fields of a request in the order of ARCHITECTURE.md, Order of
// checks.
func (d *server) checkKind(x *apiRequest, k *kind.Definition, endpoint kind.CallPath) (call.KindRequest, error) {
	var none call.KindRequest
	body, err := x.Body(d.MaxBody)
	if err != nil {
		return none, err
	}
	request, err := k.Open(body)
	if err != nil {
		return none, err
	}
	if x.model, err = request.Model(); err != nil {
		return none, err
	}
	snapshot := d.Catalog.Current()
	fits := func(m *catalog.Model) bool { return string(m.Kind) == k.Name && endpoint.Offers(m) }
	if x.model == "" {
		if x.model, err = x.firstOpen(snapshot, fits); err != nil {
			return none, err
		}
	}
	model, err := x.choose(snapshot, wire.FormChat, fits)
	if err != nil {
		return none, err
	}
	if err := request.Check(model); err != nil {
		return none, err
	}
	if err := request.CheckAddresses(d.Guard.CheckContent); err != nil {
		return none, err
	}
	return call.KindRequest{
		Kind: k, LinePath: endpoint.LinePath, Admission: x.admission(model), Snapshot: snapshot, Model: model, Body: request,
		ModelID: x.model, Span: x.Span,
	}, nil
}

// firstOpen returns the id of the catalog's first open model for an endpoint within the key's allowlist. If
// the allowlist has none, firstOpen returns the first open model, for choose to reject.
func (x *apiRequest) firstOpen(snapshot *catalog.Snapshot, fits func(*catalog.Model) bool) (string, error) {
	first := ""
	for _, m := range snapshot.Models() {
		if !fits(m) || m.State != catalog.StateOpen || x.hides(snapshot, m.ID) {
			continue
		}
		if x.caller.AllowsModel(m.ID) {
			return m.ID, nil
		}
		first = cmp.Or(first, m.ID)
	}
	if first == "" {
		return "", fault.At(fault.ModelNotFound, "model", "No model of this endpoint is open. GET /v1/models lists the models.")
	}
	return first, nil
}
