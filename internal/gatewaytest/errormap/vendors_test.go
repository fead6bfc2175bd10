package errormap

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
)

// vendorForms returns the forms responses and messages on lines with chat completions. An error must
// have the client's form.
func vendorForms() []form {
	responses, messages := chatForm(), nativeForm()
	responses.name, responses.in, responses.lines = "responses", scene.Responses, "chat"
	messages.provider, messages.good, messages.lines = responses.provider, responses.good, "chat"
	return []form{responses, messages}
}

// vendorRows returns errors of compatible vendors in the vendors' formats.
func vendorRows(t testing.TB) []row {
	var rows []row
	for _, s := range readErrors(t, "vendors.txtar") {
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

// vendorInside returns the rows of an error with status 200.
func vendorInside(s vendorError) []row {
	rows := withMessage(inside(strings.TrimPrefix(s.name, "200 "), s.body, s.want), s.message)
	for i := range rows {
		rows[i].param = s.param
	}
	return rows
}
