package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	roomHeading  = regexp.MustCompile(`^-{4,} (internal/[a-z/]+)$`)
	createTable  = regexp.MustCompile(`(?i)\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"?([a-z_]+)"?`)
	namesTable   = regexp.MustCompile(`(?i)\b(?:FROM|INTO|UPDATE|JOIN|TABLE)\s+"?([a-z_]+)"?`)
	forUpdate    = regexp.MustCompile(`(?i)\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|SHARE)\b`)
	selectsAll   = regexp.MustCompile(`(?i)^\s*SELECT\s+\*`)
	looksLikeSQL = regexp.MustCompile(`^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
)

// TestEachTableHasOneOwner checks that no package has SQL on a table of another room. The owner of
// a table is the room in the heading above its CREATE TABLE in the migrations: a line of hyphens
// and the room's path.
func TestEachTableHasOneOwner(t *testing.T) {
	t.Parallel()
	tree := source(t)
	rooms, owners := rooms(t), map[string]string{}
	if err := walk(func(name string) error {
		if path.Dir(name) != "internal/store/migrations" || !strings.HasSuffix(name, ".sql") {
			return nil
		}
		room := ""
		for line := range strings.Lines(read(t, name)) {
			if m := roomHeading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				room = m[1]
			}
			for _, table := range createTable.FindAllStringSubmatch(line, -1) {
				if _, ok := rooms[room]; !ok || owners[table[1]] != "" {
					t.Errorf("%s: table %s stands below the room %q, which is unknown, or has another owner: %q", name, table[1], room,
						owners[table[1]])
				}
				owners[table[1]] = room
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(owners) == 0 {
		t.Fatal("found no tables in the migrations, want some")
	}
	for _, f := range product(t) {
		for _, text := range texts(f.ast) {
			for _, name := range namesTable.FindAllStringSubmatch(text.value, -1) {
				if owner, ok := owners[name[1]]; ok && owner != f.room && looksLikeSQL.MatchString(text.value) {
					t.Errorf("%s: SQL of %s names %s, a table of %s; call that room instead", tree.at(text.node), f.room, name[1], owner)
				}
			}
			if owner, ok := owners[text.locks]; ok && owner != f.room {
				t.Errorf("%s: %s locks %s, a table of %s; call that room instead", tree.at(text.node), f.room, text.locks, owner)
			}
		}
	}
}

// TestSQLIsOneTextForBothDatabases checks that SQL outside the store has no row locks, which only
// one of the databases supports, and no SELECT *.
func TestSQLIsOneTextForBothDatabases(t *testing.T) {
	t.Parallel()
	tree := source(t)
	for _, f := range product(t) {
		if f.room == "internal/store" {
			continue
		}
		for _, text := range texts(f.ast) {
			if !looksLikeSQL.MatchString(text.value) {
				continue
			}
			if forUpdate.MatchString(text.value) {
				t.Errorf("%s: lock rows with Tx.Lock, not in SQL", tree.at(text.node))
			}
			if selectsAll.MatchString(text.value) {
				t.Errorf("%s: list the columns; old code must run after a new migration", tree.at(text.node))
			}
		}
	}
}

// text is a string constant of the source, or a call of Lock with a constant table. A string
// constant is a literal or a concatenation of literals.
type text struct {
	node  ast.Node
	value string // the string constant; empty for a call of Lock
	locks string // the table of the call of Lock
}

// texts returns the string constants and the calls of Lock in a file.
func texts(f *ast.File) []text {
	var found []text
	ast.Inspect(f, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.CallExpr:
			if sel, ok := e.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Lock" && len(e.Args) > 0 {
				if table, ok := constant(e.Args[0]); ok {
					found = append(found, text{node: n, locks: table})
				}
			}
		case *ast.BinaryExpr, *ast.BasicLit:
			if value, ok := constant(e.(ast.Expr)); ok {
				found = append(found, text{node: n, value: value})
				return false
			}
		}
		return true
	})
	return found
}

// constant returns the value of a string literal or of a concatenation. Operands that are not
// literals become a space.
func constant(expr ast.Expr) (string, bool) {
	switch e := expr.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		value, err := strconv.Unquote(e.Value)
		return value, err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, leftOK := constant(e.X)
		right, rightOK := constant(e.Y)
		if !leftOK && !rightOK {
			return "", false
		}
		if !leftOK {
			left = " "
		}
		if !rightOK {
			right = " "
		}
		return left + right, true
	case *ast.ParenExpr:
		return constant(e.X)
	}
	return "", false
}
