// Package wiretest owns what the tests of the wire packages share: bodies and
// events to begin with, and checks of whole streams.
//
// Invariant: it is imported by tests alone and knows no form's own package.
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

// FaultOf tells code and param of an error, as `code param`.
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
