// Command lint owns the choice of analyzers besides go vet's and staticcheck's: unchecked errors,
// wrong comparisons of errors, unchecked row errors, impossible nil checks, unused writes. It has
// no analyzer for unclosed response bodies, because bodies are passed on here and the analyzer does
// not see it. `go vet -vettool` runs lint and caches its results per package. Invariant: each
// report is a fault to fix, so a new analyzer comes with fixes for its findings.
package main

import (
	_ "embed"
	"strings"

	"github.com/jingyugao/rowserrcheck/passes/rowserr"
	"github.com/kisielk/errcheck/errcheck"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/passes/unusedwrite"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// unchecked has the functions with ignored errors. It is embedded, so a change invalidates the
// results cached by go vet.
//
//go:embed errcheck.txt
var unchecked string

func main() {
	for line := range strings.Lines(unchecked) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			errcheck.DefaultExcludedSymbols = append(errcheck.DefaultExcludedSymbols, line)
		}
	}
	unitchecker.Main(
		errcheck.Analyzer,
		errorlint.NewAnalyzer(),
		nilness.Analyzer,
		rowserr.NewAnalyzer(),
		unusedwrite.Analyzer,
	)
}
