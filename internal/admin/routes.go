package admin

// Routes lists the operator API as `METHOD /path`, with {id} for an id: for
// tests and documents made from it.
func Routes() []string {
	var all []string
	for _, r := range new(server).routes() {
		all = append(all, r.pattern())
	}
	return all
}
