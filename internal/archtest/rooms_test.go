package archtest

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// anything marks a room that may import all others.
const anything = "anything"

// rooms returns the import table of product code in ARCHITECTURE.md: the rooms that each room may
// import.
func rooms(t *testing.T) map[string][]string {
	t.Helper()
	table := map[string][]string{}
	for _, cells := range tableRows(read(t, "ARCHITECTURE.md"), "package", "owns", "may import") {
		room := strings.Trim(cells[0], "`")
		table[room] = nil
		for name := range strings.SplitSeq(cells[2], ",") {
			if name = strings.TrimSpace(name); name != "–" {
				table[room] = append(table[room], name)
			}
		}
		if cells[1] == "" {
			t.Errorf("ARCHITECTURE.md: %s owns nothing", room)
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(room))); err != nil {
			t.Errorf("ARCHITECTURE.md: the import table has %s, which does not exist", room)
		}
	}
	if len(table) < 10 {
		t.Fatalf("ARCHITECTURE.md: found %d rooms, want at least 10", len(table))
	}
	return table
}

// TestRoomsImportOnlyWhatTheTableAllows checks the imports of each product file against the import
// table. Test files and packages for tests may import anything.
func TestRoomsImportOnlyWhatTheTableAllows(t *testing.T) {
	t.Parallel()
	table := rooms(t)
	for _, f := range source(t).files {
		allowed, known := table[f.room]
		if !known {
			t.Errorf("%s: room %s has no row in the import table of ARCHITECTURE.md", f.path, f.room)
			continue
		}
		for _, imported := range f.imports {
			folder, ours := strings.CutPrefix(imported, module+"/")
			if !ours || f.test || testOnly(f.folder) || roomOf(folder) == f.room {
				continue
			}
			name := strings.TrimPrefix(roomOf(folder), "internal/")
			if !slices.Contains(allowed, name) && !slices.Contains(allowed, anything) {
				t.Errorf("%s: %s may not import %s", f.path, f.room, name)
			}
		}
	}
}

// TestImportTableHasNoUnusedEntry checks that each entry is used. An unused entry would permit an
// import without a decision.
func TestImportTableHasNoUnusedEntry(t *testing.T) {
	t.Parallel()
	used := map[string]bool{} // "room name"
	for _, f := range source(t).files {
		for _, imported := range f.imports {
			if folder, ours := strings.CutPrefix(imported, module+"/"); ours && !f.test {
				used[f.room+" "+strings.TrimPrefix(roomOf(folder), "internal/")] = true
			}
		}
	}
	for room, allowed := range rooms(t) {
		for _, name := range allowed {
			if name != anything && !used[room+" "+name] {
				t.Errorf("%s imports nothing of %s: remove it from the import table of ARCHITECTURE.md", room, name)
			}
		}
	}
}

// layers has the packages of some rooms, from the lowest layer up. A package may import only packages of
// lower layers of its room. A star stands for every other package of a folder. The layers of the ledger
// are in ARCHITECTURE.md.
var layers = map[string][][]string{
	"internal/wire": {
		{"internal/wire/rawjson", "internal/wire/field"},
		{"internal/wire/sse"},
		{"internal/wire"},
		{"internal/wire/internal/form", "internal/wire/internal/schema"},
		{"internal/wire/conversation"},
		{"internal/wire/internal/wiretest", "internal/wire/completions", "internal/wire/messages", "internal/wire/responses",
			"internal/wire/gemini", "internal/wire/jobrequest", "internal/wire/kind"},
		{"internal/wire/interactions"},
		{"internal/wire/kind/*"},
		{"internal/wire/kind/registry"},
		{"internal/wire/usage", "internal/wire/translate/internal/customtools", "internal/wire/translate/internal/pairtest"},
		{"internal/wire/translate"},
	},
	"internal/console": {
		{"internal/console/ui", "internal/console/static"},
		{"internal/console/page"},
		{"internal/console/show"},
		{"internal/console/userpages", "internal/console/operatorpages"},
		{"internal/console"},
		{"internal/console/consoletest"},
		{"internal/console/consoletest/past"},
	},
}

// ledgerLayers returns the layers of the ledger, the rows of a table in ARCHITECTURE.md.
func ledgerLayers(t *testing.T) (rows [][]string) {
	t.Helper()
	for _, cells := range tableRows(read(t, "ARCHITECTURE.md"), "package of the ledger", "owns") {
		var row []string
		for name := range strings.SplitSeq(cells[0], ",") {
			row = append(row, path.Join("internal", strings.Trim(name, " `")))
		}
		rows = append(rows, row)
	}
	return rows
}

// TestLayersImportDownwardOnly checks that packages import only lower layers of their room.
func TestLayersImportDownwardOnly(t *testing.T) {
	t.Parallel()
	layered, layer := maps.Clone(layers), map[string]int{} // rooms, and the layer of each package from 1
	layered["internal/ledger"] = ledgerLayers(t)
	for _, room := range layered {
		for i, packages := range room {
			for _, folder := range packages {
				layer[folder] = i + 1
			}
		}
	}
	seen := map[string]bool{}
	for _, f := range source(t).files {
		if layered[f.room] == nil {
			continue
		}
		seen[f.folder] = true
		if layer[f.folder] == 0 {
			if star := path.Dir(f.folder) + "/*"; layer[star] != 0 {
				layer[f.folder], seen[star] = layer[star], true
			}
		}
		if layer[f.folder] == 0 {
			t.Errorf("%s: %s is missing from the layers of its room (internal/archtest/rooms_test.go or ARCHITECTURE.md)", f.path, f.folder)
			continue
		}
		for _, imported := range f.imports {
			folder, ours := strings.CutPrefix(imported, module+"/")
			if ours && !f.test && roomOf(folder) == f.room && layer[folder] >= layer[f.folder] {
				t.Errorf("%s: %s may not import %s, which is in the same or a higher layer", f.path, f.folder, folder)
			}
		}
	}
	for folder := range layer {
		if !seen[folder] {
			t.Errorf("the layers have %s, which does not exist", folder)
		}
	}
}

// pure are the packages that internal/ledger/books may import. It decides about money without
// database, context or goroutines.
var pure = []string{"errors", "strings", "time", module + "/internal/fault", module + "/internal/ledger/measure",
	module + "/internal/store/id", module + "/internal/money"}

// TestMoneyIsDecidedByPureFunctions checks that internal/ledger/books imports only pure packages,
// so that equal rows, operations and times have equal results.
func TestMoneyIsDecidedByPureFunctions(t *testing.T) {
	t.Parallel()
	found := false
	for _, f := range source(t).files {
		if f.test || f.folder != "internal/ledger/books" {
			continue
		}
		found = true
		for _, imported := range f.imports {
			if !slices.Contains(pure, imported) {
				t.Errorf("%s: imports %s; read before and write after the decision", f.path, imported)
			}
		}
	}
	if !found {
		t.Error("found no files of internal/ledger/books, want those that decide about money")
	}
}

// TestTestPackagesStayInTests checks that product code imports no package for tests.
func TestTestPackagesStayInTests(t *testing.T) {
	t.Parallel()
	for _, f := range product(t) {
		for _, imported := range f.imports {
			folder, ours := strings.CutPrefix(imported, module+"/")
			if imported == "testing" || (ours && testOnly(folder)) {
				t.Errorf("%s: product code imports %s, which is for tests alone", f.path, imported)
			}
		}
	}
}

// TestImportTableHasNoCycle checks that no room imports itself through other rooms.
func TestImportTableHasNoCycle(t *testing.T) {
	t.Parallel()
	table := rooms(t)
	var walk func(room string, path []string)
	walk = func(room string, path []string) {
		if slices.Contains(path, room) {
			t.Fatalf("the import table has a cycle: %s", strings.Join(append(path, room), " -> "))
		}
		for _, next := range table[room] {
			if next != anything {
				walk("internal/"+next, append(slices.Clone(path), room))
			}
		}
	}
	for room := range table {
		walk(room, nil)
	}
}

// unclear are names without a meaning of their own.
var unclear = []string{"util", "utils", "common", "helper", "helpers", "types", "models", "base", "manager", "misc", "shared", "lib"}

// TestPackagesAreNamedForWhatTheyOwn refuses unclear names and packages with another name than
// their folder.
func TestPackagesAreNamedForWhatTheyOwn(t *testing.T) {
	t.Parallel()
	for _, f := range source(t).files {
		name := strings.TrimSuffix(f.ast.Name.Name, "_test")
		if slices.Contains(unclear, name) || slices.Contains(unclear, path.Base(f.folder)) {
			t.Errorf("%s: a package called %s could own anything; name what it owns", f.path, name)
		}
		if base := path.Base(f.folder); name != "main" && name != base {
			t.Errorf("%s: package %s stands in a folder called %s", f.path, name, base)
		}
		if file := strings.TrimSuffix(path.Base(f.path), ".go"); slices.Contains(unclear, strings.TrimSuffix(file, "_test")) {
			t.Errorf("%s: a file of this name could hold anything; name its idea", f.path)
		}
	}
}

// tableRows returns the body rows of the first Markdown table with the given header cells.
func tableRows(document string, header ...string) [][]string {
	var rows [][]string
	inside := false
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !inside:
			inside = slices.Equal(cells, header)
		case !strings.HasPrefix(line, "|"):
			return rows
		case len(cells) == len(header) && strings.Trim(cells[0], "-: ") != "":
			rows = append(rows, cells)
		}
	}
	return rows
}
