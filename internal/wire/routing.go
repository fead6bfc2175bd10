package wire

// routingFields are fields by which a client of some vendors chooses another
// model than the one that is priced here, or a dearer host or service of it.
var routingFields = []string{
	"provider", "route", "transforms", "models", "plugins", "preset", "fallbacks", "stop_server_tools_when", "safety_model",
}

// RoutingFields returns the names of the fields that only lines get which say
// that they pass them.
func RoutingFields() []string { return append([]string(nil), routingFields...) }

// readRouting notes the routing fields of a request.
func (r *request) readRouting() error {
	r.Routing = nil
	for _, name := range routingFields {
		if r.doc.Raw(name) != nil {
			r.Routing = append(r.Routing, name)
		}
	}
	return nil
}
