package archtest

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/upstream/adapters"
	"tollgate/internal/wire"
)

const (
	adaptersFolder = "internal/upstream/adapters"
	suiteFolder    = "internal/upstream/conformance"
)

// suiteOf returns the entry of the conformance suite for a kind.
func suiteOf(kind string) string {
	switch kind {
	case "chat":
		return "Chat"
	case "image", "video":
		return "Media"
	}
	return "Kinds"
}

// fakeAnswers are the good streams of the fake provider, by form.
var fakeAnswers = map[wire.Form]string{
	wire.FormChat: "Stream", wire.FormResponses: "ResponsesStream", wire.FormMessages: "NativeStream", wire.FormGemini: "GeminiStream",
}

// ownFake are the providers without a fake, because they simulate a provider.
var ownFake = []string{"sandbox"}

// TestEveryProviderPassesTheSuite checks that each provider of the catalog is documented for operators,
// and that its tests call the conformance suite for all of its kinds. The suite needs a fake server of
// the provider's protocol.
func TestEveryProviderPassesTheSuite(t *testing.T) {
	t.Parallel()
	providers := adapters.Providers()
	if found := len(adapterFolders(t)); found != len(providers) {
		t.Errorf("%s imports %d adapters and lists %d providers", adaptersFolder, found, len(providers))
	}
	manual := read(t, "docs/operator.md")
	for _, folder := range adapterFolders(t) {
		name, found := providerOf(t, folder)
		info, known := providers[name]
		if !found || !known {
			t.Errorf("%s: its Provider, %q, is not in the list of %s", folder, name, adaptersFolder)
			continue
		}
		mention := "[Tt]he `" + name + "` provider|an? `" + name + "` line|(?m)^\\| `" + name + "` \\||, `" + name + "` through"
		if !regexp.MustCompile(mention).MatchString(manual) {
			t.Errorf("docs/operator.md does not describe the provider %s", name)
		}
		calls := suiteCalls(t, folder)
		for _, kind := range info.Kinds {
			if !slices.Contains(calls, suiteOf(kind)) {
				t.Errorf("%s makes %s, and no test of %s runs conformance.%s for it", name, kind, folder, suiteOf(kind))
			}
		}
		for _, form := range info.Forms {
			if !slices.Contains(ownFake, name) && !fakeStreams(t, form) {
				t.Errorf("%s speaks %s, and internal/gatewaytest/fakeprovider does not (or fakeAnswers lacks it)", name, form)
			}
		}
	}
}

// fakeStreams reports whether the fake provider streams answers of a form.
func fakeStreams(t *testing.T, form wire.Form) bool {
	t.Helper()
	for _, f := range source(t).files {
		if f.folder != "internal/gatewaytest/fakeprovider" {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == fakeAnswers[form] {
				return true
			}
		}
	}
	return false
}

// adapterFolders returns the provider packages imported by adapters.
func adapterFolders(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, f := range source(t).files {
		if f.folder != adaptersFolder || f.test {
			continue
		}
		for _, imported := range f.imports {
			folder := strings.TrimPrefix(imported, module+"/")
			if _, ok := providerOf(t, folder); ok {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}

// providerOf returns the value of a package's constant Provider.
func providerOf(t *testing.T, folder string) (name string, ok bool) {
	t.Helper()
	for _, f := range source(t).files {
		if f.folder != folder || f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if is && len(spec.Names) == 1 && spec.Names[0].Name == "Provider" && len(spec.Values) == 1 {
				if value, is := spec.Values[0].(*ast.BasicLit); is {
					name, ok = strings.Trim(value.Value, `"`), true
				}
			}
			return !ok
		})
	}
	return name, ok
}

// suiteCalls returns the suite entries called by a package's tests for its own Provider.
func suiteCalls(t *testing.T, folder string) (entries []string) {
	t.Helper()
	own := folder[strings.LastIndexByte(folder, '/')+1:]
	for _, f := range source(t).files {
		if f.folder != folder || !f.test || !slices.Contains(f.imports, module+"/"+suiteFolder) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if of, name := splitSelector(call.Fun); of == "conformance" && hasProvider(call, own) {
				entries = append(entries, name)
			}
			return true
		})
	}
	return entries
}

// splitSelector splits package.Name.
func splitSelector(e ast.Expr) (of, name string) {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name, s.Sel.Name
		}
	}
	return "", ""
}

// hasProvider reports whether a call has the field `Provider: own.Provider`.
func hasProvider(call *ast.CallExpr, own string) (found bool) {
	ast.Inspect(call, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			key, _ := pair.Key.(*ast.Ident)
			of, name := splitSelector(pair.Value)
			found = found || key != nil && key.Name == "Provider" && of == own && name == "Provider"
		}
		return !found
	})
	return found
}
