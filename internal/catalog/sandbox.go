package catalog

import (
	_ "embed" // for the sandbox catalog
	"slices"
)

// sandboxProvider is the provider with made-up answers. It makes no calls.
const sandboxProvider = "sandbox"

//go:embed sandbox.yaml
var sandboxYAML string // never changed

// Sandbox returns the catalog of a first start, as YAML with comments. It has chat models of every
// form and in every state, an image and a video model, all on the provider `sandbox`, which needs
// no network. It is also the documented example of a catalog.
func Sandbox() []byte { return []byte(sandboxYAML) }

// IsSandbox reports whether the line's answers are made up.
func (l *LineSpec) IsSandbox() bool { return l.Provider == sandboxProvider }

// IsSandbox reports whether all enabled lines of a model are sandbox lines. A model
// without enabled lines is not a sandbox model.
func (s *Snapshot) IsSandbox(model string) bool {
	lines := s.linesByModel[model]
	return len(lines) > 0 && !slices.ContainsFunc(lines, func(l *Line) bool { return !l.IsSandbox() })
}

// HidesSandbox reports whether a model is a sandbox model that a key may not use. allowedModels are
// the key's. If the catalog has lines of real providers, sandbox models are only for test accounts
// and for keys that name the model. A catalog with only sandbox lines is a trial, and everybody may
// use its models.
func (s *Snapshot) HidesSandbox(model string, testAccount bool, allowedModels []string) bool {
	return s.hasRealLine && s.IsSandbox(model) && !testAccount && !slices.Contains(allowedModels, model)
}

// OpenSandboxModels returns the IDs of the sandbox models that are not retired, in the order of the
// document, if the catalog has lines of real providers.
func (s *Snapshot) OpenSandboxModels() (ids []string) {
	for _, m := range s.models {
		if m.State != StateRetired && s.HidesSandbox(m.ID, false, nil) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
