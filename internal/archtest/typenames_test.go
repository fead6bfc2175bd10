package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// sameEverywhere are exported type names allowed in several rooms, with the reason: each room has
// its own type of the same concept.
var sameEverywhere = map[string]string{
	"Options":   "the arguments of a room's constructor",
	"Reference": "an input image or video of a job: in a submission, and in a call of a provider",
	"Usage":     "the usage of a request: in a provider's answer, and in an account's totals",
}

// TestOneTypeNameInOneRoom checks that an exported type name is unique, so that its meaning is
// clear everywhere.
func TestOneTypeNameInOneRoom(t *testing.T) {
	t.Parallel()
	owners := map[string]map[string]bool{}
	for _, f := range product(t) {
		for _, decl := range f.ast.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				if name := spec.(*ast.TypeSpec).Name.Name; ast.IsExported(name) {
					if owners[name] == nil {
						owners[name] = map[string]bool{}
					}
					owners[name][strings.TrimPrefix(f.room, "internal/")] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		rooms := slices.Sorted(maps.Keys(owners[name]))
		if len(rooms) > 1 && sameEverywhere[name] == "" {
			t.Errorf("%s is a type of %s: choose another name in all but one room", name, strings.Join(rooms, ", "))
		}
	}
	for name := range sameEverywhere {
		if len(owners[name]) < 2 {
			t.Errorf("%s is a type of one room: sameEverywhere does not need it", name)
		}
	}
}
