package form

import "tollgate/internal/wire"

// routingFields are wire.RoutingFields, made once.
var routingFields = wire.RoutingFields()

// ReadRouting notes the routing fields of a request.
func (r *Request) ReadRouting() error {
	r.Routing = nil
	for _, name := range routingFields {
		if r.Doc.Raw(name) != nil {
			r.Routing = append(r.Routing, name)
		}
	}
	return nil
}
