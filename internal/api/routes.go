package api

import "strings"

// Routes lists the public endpoints as `METHOD /path`, with {id} for an id, for tests.
func Routes() []string {
	var all []string
	for _, r := range new(server).routes() {
		all = append(all, strings.ReplaceAll(r.Pattern, "{id...}", "{id}"))
	}
	return all
}
