package console_test

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template/parse"
	"unicode"

	"golang.org/x/tools/go/packages"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/operatorpages"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/invoice"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/line/health"
	"tollgate/internal/mail"
	"tollgate/internal/operator"
	"tollgate/internal/provider"
	"tollgate/internal/topup"
)

// faultRooms are the rooms with faults for forms and pages of the console. The value is false for rooms with
// many faults for the API only: those need no translation.
var faultRooms = map[string]bool{"account": true, "announcement": true, "catalog": false, "catalog/vault": true,
	"invoice": true, "job": false, "ledger/requestlog": true, "ledger/spending": true, "mail": true, "operator": true, "topup": true,
	"webhook": true, "console/operatorpages": true, "console/page": true, "console/show": true, "console/userpages": true}

// verb matches a verb of a fault's format. The text has `%s` in its place.
var verb = regexp.MustCompile(`%%|%[+#]?[a-zA-Z]|\{param\}`)

// texts are the places of texts. An optional text may have a translation.
type texts struct {
	places   map[string]string
	optional map[string]bool
}

// add adds a text with a letter outside of its verbs.
func (c *texts) add(text, place string) {
	if strings.ContainsFunc(verbs.ReplaceAllString(text, ""), unicode.IsLetter) && text[0] >= ' ' {
		c.places[text] = place
	}
}

// TestTexts compares the texts of the console with the translations: all are translated, with the same
// verbs, and no translation is unused. Texts are put together by ui.Sayf only.
func TestTexts(t *testing.T) {
	t.Parallel()
	c := &texts{places: map[string]string{}, optional: map[string]bool{}}
	c.addSources(t)
	c.addTemplates(t)
	c.addNames()
	for _, locale := range mail.Locales() {
		translations, err := ui.ReadTexts(locale)
		if err != nil {
			t.Fatal(err)
		}
		if translations == nil {
			continue // the language of the keys
		}
		for text, place := range c.places {
			if _, ok := translations[ui.Words(text)]; !ok {
				t.Errorf("%s: %q has no text in %s", place, text, locale)
			}
		}
		for text, translation := range translations {
			if !strings.ContainsFunc(verbs.ReplaceAllString(string(text), ""), unicode.IsLetter) {
				continue
			}
			if _, ok := c.places[string(text)]; !ok && !c.optional[string(text)] {
				t.Errorf("%s: the text %q is unused", locale, text)
			}
			if got, want := verbsOf(translation), verbsOf(string(text)); !slices.Equal(got, want) {
				t.Errorf("%s: the text of %q has the verbs %q, want %q", locale, text, got, want)
			}
		}
	}
}

// verbs matches a verb of a text.
var verbs = regexp.MustCompile(`%(?:\[(\d)\])?s`)

// verbsOf returns the sorted numbers of the values in a text.
func verbsOf(text string) (all []string) {
	for i, found := range verbs.FindAllStringSubmatch(text, -1) {
		if found[1] == "" {
			found[1] = string(rune('1' + i))
		}
		all = append(all, found[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// addSources adds the constants of the type ui.Words and the formats of faults.
func (c *texts) addSources(t *testing.T) {
	patterns := []string{"tollgate/internal/console/...", "tollgate/internal/app"}
	for room := range faultRooms {
		patterns = append(patterns, "tollgate/internal/"+room)
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile, Dir: "."}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loaded {
		for _, err := range p.Errors {
			t.Fatal(err)
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(node ast.Node) bool {
				switch n := node.(type) {
				case *ast.AssignStmt:
					if n.Tok == token.ADD_ASSIGN && isWords(p.TypesInfo.TypeOf(n.Lhs[0])) {
						t.Errorf("%s: a text is put together with +=; use ui.Sayf", p.Fset.Position(n.Pos()))
					}
				case *ast.CallExpr:
					c.addFault(p, n)
				}
				e, ok := node.(ast.Expr)
				return !ok || !c.addConstant(t, p, e)
			})
		}
	}
}

func isWords(of types.Type) bool {
	named, ok := of.(*types.Named)
	return ok && named.Obj().Name() == "Words" && named.Obj().Pkg().Path() == "tollgate/internal/console/ui"
}

// addConstant adds an expression of the type ui.Words with a constant value, and reports whether it is one.
func (c *texts) addConstant(t *testing.T, p *packages.Package, e ast.Expr) (constantText bool) {
	of, ok := p.TypesInfo.Types[e]
	if !ok || of.IsType() || !isWords(of.Type) {
		return false
	}
	if of.Value != nil {
		if text := constant.StringVal(of.Value); text != "" {
			c.add(text, p.Fset.Position(e.Pos()).String())
		}
		return true
	}
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD && p.PkgPath != "tollgate/internal/console/ui" {
		t.Errorf("%s: a text is put together with +; use ui.Sayf", p.Fset.Position(e.Pos()))
	}
	return false
}

// addFault adds the constant arguments of a fault's constructor.
func (c *texts) addFault(p *packages.Package, call *ast.CallExpr) {
	required, ok := faultRooms[strings.TrimPrefix(p.PkgPath, "tollgate/internal/")]
	name, isSelector := call.Fun.(*ast.SelectorExpr)
	id, isIdent := call.Fun.(*ast.Ident)
	if isSelector {
		id = name.Sel
	}
	if !ok || !isSelector && !isIdent {
		return
	}
	made, ok := p.TypesInfo.Uses[id].(*types.Func)
	if !ok || made.Signature().Results().Len() == 0 {
		return
	}
	results := made.Signature().Results()
	if results.At(results.Len()-1).Type().String() != "*tollgate/internal/fault.Error" {
		return
	}
	for _, argument := range call.Args {
		value := p.TypesInfo.Types[argument].Value
		if value == nil || value.Kind() != constant.String || !strings.Contains(constant.StringVal(value), " ") {
			continue
		}
		text := verb.ReplaceAllStringFunc(constant.StringVal(value), func(v string) string {
			if v == "%%" {
				return v
			}
			return "%s"
		})
		c.optional[text] = true
		if required {
			c.add(text, p.Fset.Position(argument.Pos()).String())
		}
	}
}

// addTemplates adds the texts of the console's templates.
func (c *texts) addTemplates(t *testing.T) {
	files, err := filepath.Glob("*/html/*.html")
	if err != nil || len(files) < 50 {
		t.Fatalf("found the templates %v, error %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree := parse.New(file)
		tree.Mode = parse.SkipFuncCheck
		trees := map[string]*parse.Tree{}
		if _, err := tree.Parse(string(raw), "", "", trees); err != nil {
			t.Fatal(err)
		}
		for _, tree := range trees {
			ui.EachText(tree, func(text string) string {
				c.add(html.UnescapeString(text), file)
				return text
			})
		}
		for _, said := range sayCall.FindAllStringSubmatch(string(raw), -1) {
			c.add(said[1], file)
		}
	}
}

// sayCall matches the text in a template's call of the function named say.
var sayCall = regexp.MustCompile(`\bsay "([^"]+)"`)

// addNames adds texts from names in the catalog and the ledger.
func (c *texts) addNames() {
	add := func(all ...string) {
		for _, text := range all {
			c.add(text, "names")
		}
	}
	for _, kind := range catalog.Kinds() {
		add(ui.Title(string(kind)))
		d := kind.Definition()
		if d == nil {
			continue
		}
		for _, number := range d.Numbers {
			add(show.FieldTitle(number.Name))
			if strings.HasPrefix(number.Name, "max_") {
				add(string(show.LimitName(number.Name)))
			}
		}
		for _, list := range d.Lists {
			add(show.FieldTitle(list.Name))
		}
		for _, flag := range d.Flags {
			add(show.FieldTitle(flag))
		}
		for i := range d.Measures {
			m := &d.Measures[i]
			add(m.Noun)
			for _, unit := range m.Units {
				add(string(show.UnitName(unit)), ui.Title(string(show.UnitName(unit))))
			}
			if m.Quantity != "" {
				add(measure.Unit(m.Quantity).Noun(1), measure.Unit(m.Quantity).Noun(2), measure.Unit(m.Quantity).Title())
			}
		}
	}
	for _, role := range account.Roles() {
		add(string(role))
	}
	for _, row := range fault.JobTable() {
		add(row.Message)
	}
	for _, row := range fault.Table() {
		add(string(show.Meaning(string(row.Code))))
	}
	for _, act := range operator.Acts() {
		add(string(operatorpages.ActLabel(act)))
	}
	for _, v := range provider.Vendors() {
		if strings.HasPrefix(v.Name, "Other") {
			add(v.Name)
		}
	}
	for _, step := range row.Steps() {
		if _, ok := show.JobStep(step); !ok {
			add(ui.Title(string(show.StateLabel(step))))
		}
	}
	add(string(topup.Refund), string(topup.Dispute), invoice.Invoice.Title(), invoice.CreditNote.Title())
	for _, state := range topup.States() {
		add(strings.ReplaceAll(string(state), "_", " "))
	}
	for _, state := range []string{health.StateInService, health.StateCooling, health.StateCircuitOpen, health.StateHalfOpen,
		health.StateCredentialsOut, health.StateModelOut, health.StateFormOut, string(catalog.StateOpen), string(catalog.StateMaintenance),
		string(catalog.StateComingSoon), string(catalog.StateRetired)} {
		add(string(show.StateLabel(state)))
	}
	add("Keys", "Users", "Money", "Requests", "Jobs", "Webhook", "Log", "Account", "Key", "Model", "Line", "Code", "Status", "Object")
	for _, counted := range []string{"accounts", "accounts with deleted receipts", "codes", "credits", "days of limits", "days of series",
		"documents", "ended jobs", "entries", "holds", "holds of jobs", "kept charges", "keys", "parts of keys' logs", "rate windows", "receipts",
		"recomputed charges", "running jobs", "series", "sums above holds", "top-ups", "trial credits", "open holds of ended processes"} {
		add(ui.Title(counted))
	}
	add(account.CodeUnused, account.CodeUsed, account.CodeExpired, account.CodeVoid)
}
