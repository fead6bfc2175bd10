package contract

import (
	"net/http"
	"strings"
)

// Welcome is the answer of an address without a console.
type Welcome struct {
	Name       string `json:"name"`
	V1         string `json:"v1,omitempty"`     // base address of OpenAI clients
	Native     string `json:"native,omitempty"` // base address of Anthropic clients
	Docs       string `json:"docs,omitempty"`
	OpenAPI    string `json:"openapi,omitempty"`
	AdminDocs  string `json:"admin_docs,omitempty"`
	AdminAPI   string `json:"admin,omitempty"`
	AdminSpecs string `json:"admin_openapi,omitempty"`
}

// NewWelcome describes an address with the API, the operator API, or both.
func NewWelcome(base string, api, admin bool) Welcome {
	w := Welcome{Name: "tollgate"}
	if api {
		w.V1, w.Native, w.Docs, w.OpenAPI = base+"/v1", base+"/native", CallersPage, CallersSource
	}
	if admin {
		w.AdminAPI, w.AdminDocs, w.AdminSpecs = "/admin/v1", OperatorsPage, OperatorsSource
	}
	return w
}

// Greet answers `GET /` where there is no console to lead to: browsers get a page,
// others JSON.
func (p *Site) Greet(w http.ResponseWriter, r *http.Request, shown Welcome) error {
	w.Header().Set("Cache-Control", "no-store") // it has a console as soon as somebody can sign in
	w.Header().Set("Vary", "Accept")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		send(w, "application/json", append(encode(shown), '\n'))
		return nil
	}
	page, err := p.draw("welcome.html", surround{Title: shown.Name}, shown)
	if err != nil {
		return err
	}
	sendPage(w, page)
	return nil
}
