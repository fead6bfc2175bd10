package wire

// RoutingFields returns the names of the fields by which clients of some vendors
// choose another model than the one that is priced here, or a dearer host or
// service of it. Only lines get them which say that they pass them.
func RoutingFields() []string {
	return []string{
		"provider", "route", "transforms", "models", "plugins", "preset", "fallbacks", "stop_server_tools_when", "safety_model",
	}
}
