package errormap

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
)

// vendorForms are all forms of clients before lines that speak chat completions:
// what a vendor says there becomes the form of whoever asked.
func vendorForms() []form {
	chat, responses, messages := chatForm(), chatForm(), nativeForm()
	responses.name, responses.in = "responses", scene.Responses
	messages.provider, messages.good = chat.provider, chat.good
	forms := []form{chat, responses, messages}
	for i := range forms {
		forms[i].lines = chat.name
	}
	return forms
}

// vendorRows are errors of compatible vendors, in shapes and words of their own.
func vendorRows(t testing.TB) []row {
	var rows []row
	for _, s := range readSaid(t, "vendors.txtar") {
		var status int
		if _, err := fmt.Sscanf(s.name, "%d", &status); err != nil {
			t.Fatalf("vendors.txtar: %s: %v", s.name, err)
		}
		if status == 200 {
			rows = append(rows, vendorInside(s)...)
			continue
		}
		rows = append(rows, s.row(s.name, status))
	}
	return rows
}

// vendorInside are the rows of an error that comes with status 200.
func vendorInside(s said) []row {
	rows := told200(inside(strings.TrimPrefix(s.name, "200 "), s.body, s.want), s.message)
	for i := range rows {
		rows[i].param = s.param
	}
	return rows
}
