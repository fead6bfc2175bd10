// Package wiretest owns the code shared by the tests of the wire packages: bodies, events, and
// checks of whole streams.
//
// Invariant: only tests import it, and it imports no package of a form.
package wiretest

import (
	"errors"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

// CodeOf returns the code and field of a client-visible error.
func CodeOf(t *testing.T, err error) (fault.Code, string) {
	t.Helper()
	if err == nil {
		return "", ""
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("error %v (%T) is no *fault.Error", err, err)
	}
	if f.Message() == "" {
		t.Errorf("%s has no message", f.Code)
	}
	return f.Code, f.Param
}

// FaultOf returns an error as `code param`.
func FaultOf(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("%v is no *fault.Error", err)
	}
	if f.Status() != 400 || f.Message() == "" {
		t.Errorf("status %d, message %q", f.Status(), f.Message())
	}
	return strings.TrimSpace(string(f.Code) + " " + f.Param)
}
