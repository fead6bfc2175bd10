package fal

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"
)

// maxAddress is the maximum length of an address from fal, in bytes.
const maxAddress = 1000

// requestID matches fal's request IDs, and a little more.
var requestID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// ticket identifies a request at fal. Addresses that follow from App and ID are omitted.
type ticket struct {
	ID string `json:"id"`
	// App is the model's ID without its path, the beginning of a request's addresses.
	App      string `json:"app"`
	Status   string `json:"status,omitempty"`
	Response string `json:"response,omitempty"`
	Cancel   string `json:"cancel,omitempty"`
}

// String returns the stored form of the ticket.
func (t ticket) String() string {
	text, _ := json.Marshal(t) // cannot fail for strings
	return string(text)
}

// readTicket parses a ticket from String.
func readTicket(text string) (ticket, bool) {
	var t ticket
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return ticket{}, false
	}
	return t, requestID.MatchString(t.ID) && modelID.MatchString(t.App)
}

// appOf returns a model's ID without its path: OWNER/ALIAS, with the namespace in front for fal's two
// namespaces.
func appOf(model string) string {
	parts := strings.Split(model, "/")
	keep := 2
	if (parts[0] == "workflows" || parts[0] == "comfy") && len(parts) > 2 {
		keep = 3
	}
	return strings.Join(parts[:min(keep, len(parts))], "/")
}

// newTicket returns the ticket from the response to a submission. It returns false if the response
// has no request ID.
func (a *Adapter) newTicket(model string, body []byte) (ticket, bool) {
	doc := gjson.ParseBytes(body)
	t := ticket{ID: doc.Get("request_id").String(), App: appOf(model)}
	if !gjson.ValidBytes(body) || !requestID.MatchString(t.ID) {
		return ticket{}, false
	}
	storeAddress := func(member string, to *string, action ...string) {
		address := doc.Get(member).String()
		if _, ok := a.Line.ParseOwnURL(address); ok && len(address) <= maxAddress && address != a.address("", t, action...).String() {
			*to = address
		}
	}
	storeAddress("status_url", &t.Status, "status")
	storeAddress("response_url", &t.Response)
	storeAddress("cancel_url", &t.Cancel, "cancel")
	return t, true
}

// address returns the address for queries about a ticket's request: fal's address if it is on the
// line's own host, otherwise an address built from the ticket.
func (a *Adapter) address(fromProvider string, t ticket, action ...string) *url.URL {
	if u, ok := a.Line.ParseOwnURL(fromProvider); ok {
		return u
	}
	return a.Line.URL(append([]string{t.App, "requests", t.ID}, action...)...)
}
