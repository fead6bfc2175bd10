package api

import (
	"tollgate/internal/call"
	"tollgate/internal/catalog"
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
	model, err := x.choose(snapshot, wire.FormChat, func(m *catalog.Model) bool { return string(m.Kind) == k.Name && endpoint.Offers(m) })
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
