// Command lint owns the choice of analyzers that run beside go vet's own and
// staticcheck's: errors that nobody looks at, errors that are compared wrongly,
// rows whose error is not asked for, values that cannot be what they are taken
// for. Answers' bodies are not among it: here they are passed on, which the
// known analyzer takes for forgotten. `go vet -vettool` runs it, and keeps what it
// said of a package until that changes. Invariant: what it reports is a fault to
// mend, so a new analyzer comes with the mending of what it finds.
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

// unchecked names the functions whose errors need not be looked at. It is part of
// the program, so that what go vet keeps is forgotten when it changes.
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
