package catalog

import _ "embed" // for the sandbox catalog

//go:embed sandbox.yaml
var sandbox string // never changed

// Sandbox returns the catalog of a first start, as YAML with comments: chat
// models of every form and in every state, an image and a video model, all on
// the provider `sandbox`, which needs no network. It is the documented example of a catalog too.
func Sandbox() []byte { return []byte(sandbox) }
