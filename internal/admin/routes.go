package admin

// Routes returns the operator API's routes as `METHOD /path`, with {id} for an id, for tests and
// generated documents.
func Routes() []string {
	var patterns []string
	for _, r := range new(server).routes() {
		patterns = append(patterns, r.pattern())
	}
	return patterns
}
