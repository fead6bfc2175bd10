package archtest

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/app"
	"tollgate/internal/fault"
)

// documents maps the short names of documents in comments to their paths.
var documents = map[string]string{
	"ARCHITECTURE.md": "ARCHITECTURE.md",
	"interface.md":    "docs/interface.md",
	"operator.md":     "docs/operator.md",
	"money.md":        "docs/money.md",
}

// TestDocumentShowsTheErrorTable compares the table of codes in docs/interface.md with the table of
// package fault.
func TestDocumentShowsTheErrorTable(t *testing.T) {
	t.Parallel()
	shown := map[string][]string{}
	for _, cells := range tableRows(read(t, "docs/interface.md"), "code", "status", "type", "when") {
		shown[strings.Trim(cells[0], "`")] = []string{cells[1], strings.Trim(cells[2], "`"), cells[3]}
	}
	for _, row := range fault.Table() {
		status := strconv.Itoa(row.Status)
		if got := shown[string(row.Code)]; !slices.Equal(got, []string{status, row.Type, row.When}) {
			t.Errorf("docs/interface.md: %s has %q, want %s %s %q", row.Code, got, status, row.Type, row.When)
		}
		delete(shown, string(row.Code))
	}
	for code := range shown {
		t.Errorf("docs/interface.md: %s is in no table of package fault", code)
	}
}

// TestDocumentShowsTheTableOfFailedJobs compares the document's table with package fault; a star
// marks faults of the user's input.
func TestDocumentShowsTheTableOfFailedJobs(t *testing.T) {
	t.Parallel()
	shown := map[string][]string{}
	for _, cells := range tableRows(read(t, "docs/interface.md"), "code", "kind", "cause") {
		for cell := range strings.SplitSeq(cells[0], ",") {
			code, blamed := strings.CutSuffix(strings.TrimSpace(cell), "*")
			shown[strings.Trim(code, "`")] = []string{cells[1],
				map[bool]string{true: "invalid_request_error", false: "upstream_error"}[blamed], cells[2]}
		}
	}
	for _, row := range fault.JobTable() {
		if got := shown[string(row.Code)]; !slices.Equal(got, []string{row.Kind, row.Type, row.When}) {
			t.Errorf("docs/interface.md: %s of failed jobs has %q, want %s %s %q", row.Code, got, row.Kind, row.Type, row.When)
		}
		delete(shown, string(row.Code))
	}
	for code := range shown {
		t.Errorf("docs/interface.md: %s of failed jobs is in no table of package fault", code)
	}
}

// TestCodesOfFailedJobsHaveRows finds all codes of failed jobs: the field Job of an
// upstream.JobFailure, the second argument of FailJob and the code of a jobError.
func TestCodesOfFailedJobsHaveRows(t *testing.T) {
	t.Parallel()
	tree := source(t)
	rows := map[string]bool{}
	for _, row := range fault.JobTable() {
		rows[camel(string(row.Code))] = true
	}
	found := 0
	check := func(at ast.Node, value ast.Expr) {
		code, ok := value.(*ast.SelectorExpr)
		if !ok || lastName(code.X) != "fault" {
			return
		}
		found++
		if !rows[code.Sel.Name] {
			t.Errorf("%s: fault.%s is not a code of failed jobs: internal/fault/job.go has no row for it", tree.at(at), code.Sel.Name)
		}
	}
	for _, f := range tree.files {
		if f.test || f.room != "internal/upstream" && f.room != "internal/job" && f.room != "internal/line" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch e := n.(type) {
			case *ast.CompositeLit:
				name := lastName(e.Type)
				for _, element := range e.Elts {
					pair, ok := element.(*ast.KeyValueExpr)
					if ok && (name == "JobFailure" && lastName(pair.Key) == "Job" || name == "jobError" && lastName(pair.Key) == "code") {
						check(pair, pair.Value)
					}
				}
			case *ast.AssignStmt:
				for i, left := range e.Lhs {
					if field, ok := left.(*ast.SelectorExpr); ok && field.Sel.Name == "Job" && len(e.Rhs) == len(e.Lhs) {
						check(e, e.Rhs[i])
					}
				}
			case *ast.CallExpr:
				if lastName(e.Fun) == "FailJob" && len(e.Args) == 3 {
					check(e, e.Args[1])
				}
			}
			return true
		})
	}
	if found < 30 {
		t.Errorf("found %d codes, want at least 30", found)
	}
}

// camel returns the name of a code's constant: RenderFailed for render_failed.
func camel(code string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(code, "_") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// lastName returns the last name of an expression, or "".
func lastName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// TestOperatorDocumentShowsEverySetting compares the table of settings with the code, in order and
// with defaults.
func TestOperatorDocumentShowsEverySetting(t *testing.T) {
	t.Parallel()
	rows := tableRows(read(t, "docs/operator.md"), "key", "default", "meaning")
	settings := app.AllSettings()
	if len(rows) != len(settings) {
		t.Errorf("docs/operator.md shows %d settings, want %d", len(rows), len(settings))
	}
	for i := range min(len(rows), len(settings)) {
		key, byDefault := strings.Trim(rows[i][0], "`"), strings.Trim(rows[i][1], "`")
		if byDefault == "none" || strings.Contains(byDefault, "+") || strings.Contains(byDefault, "{") {
			byDefault = "" // no default, or one made of other settings
		}
		if key != settings[i].Key || byDefault != settings[i].Default {
			t.Errorf("docs/operator.md, setting %d: %s %q, want %s %q", i, key, byDefault, settings[i].Key, settings[i].Default)
		}
	}
}

var (
	citation = regexp.MustCompile(`\b([A-Za-z]+\.md)(?:, ([A-Z][^.);:]*))?`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$|^\*\*(.+?)\.?\*\*|^\d+\. \*\*(.+?)\.?\*\*`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"\s]+)"`)
)

// TestCitedRulesExist checks that each citation in a comment ("interface.md, Error object") names a
// document and one of its headings.
func TestCitedRulesExist(t *testing.T) {
	t.Parallel()
	tree := source(t)
	headings := map[string][]string{}
	for name, file := range documents {
		for _, m := range heading.FindAllStringSubmatch(read(t, file), -1) {
			headings[name] = append(headings[name], m[1]+m[2]+m[3])
		}
	}
	check := func(n ast.Node, text string) {
		text = strings.Join(strings.Fields(text), " ")
		for _, m := range citation.FindAllStringSubmatch(text, -1) {
			name, section := m[1], m[2]
			if _, ok := documents[name]; !ok {
				if _, err := os.Stat(filepath.Join(root, name)); err != nil {
					t.Errorf("%s: cites %s, which does not exist", tree.at(n), name)
				}
				continue
			}
			if section != "" && !slices.ContainsFunc(headings[name], func(h string) bool { return strings.HasPrefix(section, h) }) {
				t.Errorf("%s: cites %s, %q: there is no such heading", tree.at(n), name, section)
			}
		}
	}
	for _, f := range tree.files {
		if f.room == "internal/archtest" {
			continue // its comments and messages name documents as such
		}
		for _, group := range f.ast.Comments {
			check(group, group.Text())
		}
	}
}

// TestLinksOfDocumentsExist checks that the relative links of all documents lead to a file, and to one of
// its headings if they name one.
func TestLinksOfDocumentsExist(t *testing.T) {
	t.Parallel()
	if err := walk(func(name string) error {
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			target, anchor, _ := strings.Cut(m[1]+m[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if info, statErr := os.Stat(filepath.Join(root, filepath.FromSlash(file))); statErr == nil && info.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: the link to %s leads nowhere", name, m[1]+m[2])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(string(raw)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", name, file, anchor)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// anchors returns the link targets of a document's headings.
func anchors(document string) []string {
	var found []string
	for line := range strings.Lines(document) {
		if text := strings.TrimLeft(line, "#"); text != line && strings.HasPrefix(text, " ") {
			text = strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-', r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r > 127:
					return r
				}
				return -1
			}, strings.ToLower(strings.TrimSpace(text)))
			found = append(found, text)
		}
	}
	return found
}

// TestChangelogSaysEachThingOnce checks that no version has a heading twice, or an entry that begins like
// another entry. Merges cause such repetitions.
func TestChangelogSaysEachThingOnce(t *testing.T) {
	t.Parallel()
	version, section, count := "", "", 0
	entries, headings := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(read(t, "CHANGELOG.md")) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			version, entries, headings = name, map[string]string{}, map[string]bool{}
		}
		if name, ok := strings.CutPrefix(line, "### "); ok {
			section = name
			if headings[name] {
				t.Errorf("CHANGELOG.md: %s has %q twice", version, name)
			}
			headings[name] = true
		}
		entry, ok := strings.CutPrefix(line, "- ")
		if !ok {
			continue
		}
		count++
		entry = strings.TrimSuffix(entry, ".")
		for other, under := range entries {
			if strings.HasPrefix(entry, other) || strings.HasPrefix(other, entry) {
				t.Errorf("CHANGELOG.md, %s: %q stands below %s and %s", version, min(entry, other), under, section)
			}
		}
		entries[entry] = section
	}
	if count < 10 {
		t.Errorf("found %d entries, want at least 10", count)
	}
}
