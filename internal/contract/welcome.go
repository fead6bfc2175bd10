package contract

import (
	"net/http"
	"strings"
)

// Welcome is the answer to `GET /` at an address without a console.
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

// NewWelcome describes an address with the API, the operator API, or both. base is the address.
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

// Greet answers `GET /` at an address without a console. Browsers get a page, other clients JSON.
func (s *Site) Greet(w http.ResponseWriter, r *http.Request, content Welcome) error {
	w.Header().Set("Cache-Control", "no-store") // the address has a console as soon as somebody can sign in
	w.Header().Set("Vary", "Accept")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		send(w, "application/json", append(encode(content), '\n'))
		return nil
	}
	page, err := s.render("welcome.html", layout{Title: content.Name}, content)
	if err != nil {
		return err
	}
	sendPage(w, page)
	return nil
}
