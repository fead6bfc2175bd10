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

// suiteOf maps kinds to entries of the conformance suite.
var suiteOf = map[string]string{"chat": "Chat", "image": "Media", "video": "Media"}

// fakeAnswers are the good streams of the fake provider, by form.
var fakeAnswers = map[wire.Form]string{
	wire.FormChat: "Stream", wire.FormResponses: "ResponsesStream", wire.FormMessages: "NativeStream", wire.FormGemini: "GeminiStream",
}

// ownFake are the providers without a fake, because they simulate a provider.
var ownFake = []string{"sandbox"}

// TestEveryProviderIsProven checks that each provider of the catalog is documented for operators
// and passes the conformance suite for all of its kinds. The suite needs a fake server of the
// provider's protocol.
func TestEveryProviderIsProven(t *testing.T) {
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
			t.Errorf("%s: its Provider, %q, is none that %s lists", folder, name, adaptersFolder)
			continue
		}
		mention := "[Tt]he `" + name + "` provider|an? `" + name + "` line|(?m)^\\| `" + name + "` \\||, `" + name + "` through"
		if !regexp.MustCompile(mention).MatchString(manual) {
			t.Errorf("docs/operator.md says nothing of provider %s", name)
		}
		runs := provenBy(t, folder)
		for _, kind := range info.Kinds {
			if !slices.Contains(runs, suiteOf[kind]) {
				t.Errorf("%s makes %s, and no test of %s runs conformance.%s for it", name, kind, folder, suiteOf[kind])
			}
		}
		for _, form := range info.Forms {
			if !slices.Contains(ownFake, name) && !speaks(t, form) {
				t.Errorf("%s speaks %s, and internal/gatewaytest/fakeprovider does not (or fakeAnswers lacks it)", name, form)
			}
		}
	}
}

// speaks reports whether the fake provider streams answers of a form.
func speaks(t *testing.T, form wire.Form) bool {
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

// providerOf is the constant Provider of a package.
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

// provenBy returns the suite entries called by a package's tests for its own Provider.
func provenBy(t *testing.T, folder string) (runs []string) {
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
			if of, name := selected(call.Fun); of == "conformance" && names(call, own) {
				runs = append(runs, name)
			}
			return true
		})
	}
	return runs
}

// selected splits package.Name.
func selected(e ast.Expr) (of, name string) {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name, s.Sel.Name
		}
	}
	return "", ""
}

// names reports whether a call has the field `Provider: own.Provider`.
func names(call *ast.CallExpr, own string) (found bool) {
	ast.Inspect(call, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			key, _ := pair.Key.(*ast.Ident)
			of, name := selected(pair.Value)
			found = found || key != nil && key.Name == "Provider" && of == own && name == "Provider"
		}
		return !found
	})
	return found
}
