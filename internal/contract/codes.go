package contract

import (
	"errors"
	"fmt"
)

var errNoCode = errors.New("no code of the table of errors")

// explainCodes adds a paragraph for each error code to the description of its answer. It returns errNoCode if a
// code is unknown.
func (t table) explainCodes(explain func(code string) string) error {
	for _, r := range t.table("components", "responses") {
		response, _ := r.value.(table)
		about := response.text("description")
		for _, code := range texts(response.list("x-codes")) {
			explanation := explain(code)
			if explanation == "" {
				return fmt.Errorf("%s: %s: %w", r.name, code, errNoCode)
			}
			about += fmt.Sprintf("\n\n`%s`: %s", code, explanation)
		}
		response.set("description", about) // the member exists, so set changes it in place
	}
	return nil
}
