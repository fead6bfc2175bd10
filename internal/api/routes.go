package api

import "strings"

// Routes lists the public surface as `METHOD /path`, with {id} for an id: for
// tests and documents made from it.
func Routes() []string {
	var all []string
	for _, r := range new(server).routes() {
		all = append(all, strings.ReplaceAll(r.Pattern, "{id...}", "{id}"))
	}
	return all
}
