package contract_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

// TestCodesStandWhereTheyAreAnswered compares the places in the table of errors with the operations
// of the documents in both directions: an operation has exactly the codes of its places, by type
// below /native, and each place has an operation.
func TestCodesStandWhereTheyAreAnswered(t *testing.T) {
	t.Parallel()
	lists := map[string][]string{} // by operation
	for _, r := range responses(t) {
		operation := r.operation()
		lists[operation] = append(lists[operation], r.names("x-codes")...)
		for _, code := range r.names("x-codes") {
			if row, _ := fault.Lookup(fault.Code(code)); !row.Scope.Has(operation) {
				t.Errorf("%s lists %s, whose scope is: %s", operation, code, row.Scope)
			}
		}
		for _, name := range r.names("x-types") {
			lists[operation] = append(lists[operation], r.status+" "+name)
			if !slices.ContainsFunc(fault.Table(), func(row fault.TableRow) bool {
				return row.Scope.Has(operation) && isNative(row, r.status, name)
			}) {
				t.Errorf("%s lists %s %s, which no code of its places has", operation, r.status, name)
			}
		}
	}
	for operation, listed := range lists {
		for _, row := range fault.Table() {
			said := string(row.Code)
			if strings.Contains(operation, " /native/") {
				said = strconv.Itoa(row.NativeStatus()) + " " + row.Native
			}
			if row.Scope != fault.Everywhere && row.Scope.Has(operation) && !slices.Contains(listed, said) {
				t.Errorf("%s does not list %s of %s, whose scope is: %s", operation, said, row.Code, row.Scope)
			}
		}
	}
	for _, p := range fault.Scopes() {
		native := p.Operations() == nil
		for _, operation := range p.Operations() {
			native = native || strings.Contains(operation, " /native/")
			if lists[operation] == nil {
				t.Errorf("%s: there is no %s", p, operation)
			}
		}
		if native != p.Native() {
			t.Errorf("%s: Native is %v of %q", p, p.Native(), p.Operations())
		}
	}
}

// isNative reports whether a row has a status and a type below /native. The code for busy lines has
// two types.
func isNative(row fault.TableRow, status, name string) bool {
	return strconv.Itoa(row.NativeStatus()) == status && (row.Native == name ||
		row.Code == fault.RateLimitExceeded && name == "overloaded_error")
}
