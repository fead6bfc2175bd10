// Package registry owns the list of the kinds of models defined below package kind.
//
// Invariant: a kind is listed once, under its own name.
package registry

import (
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/kind/embedding"
	"tollgate/internal/wire/kind/moderation"
	"tollgate/internal/wire/kind/rerank"
	"tollgate/internal/wire/kind/speech"
	"tollgate/internal/wire/kind/transcription"
)

// kinds are the definitions in the order of their documents. Never changed.
var kinds = []*kind.Definition{
	embedding.Definition(),
	rerank.Definition(),
	moderation.Definition(),
	speech.Definition(),
	transcription.Definition(),
}

// All returns all kinds. Callers must not change the slice.
func All() []*kind.Definition { return kinds }

// Find returns the kind with a name, or nil.
func Find[T ~string](name T) *kind.Definition {
	for _, d := range kinds {
		if d.Name == string(name) {
			return d
		}
	}
	return nil
}

// Names returns the names of all kinds.
func Names() (names []string) {
	for _, d := range kinds {
		names = append(names, d.Name)
	}
	return names
}
