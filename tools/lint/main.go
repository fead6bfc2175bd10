// Command lint owns the choice of analyzers that run beside go vet and
// staticcheck: errors that nobody looks at, errors that are compared wrongly,
// rows whose error is not asked for, values that cannot be what they are taken
// for. Answers' bodies are not among it: here they are passed on, which the
// known analyzer takes for forgotten. Invariant: what it reports is a fault to mend, so a new analyzer comes
// with the mending of what it finds.
package main

import (
	"github.com/jingyugao/rowserrcheck/passes/rowserr"
	"github.com/kisielk/errcheck/errcheck"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/passes/unusedwrite"
)

func main() {
	multichecker.Main(
		errcheck.Analyzer,
		errorlint.NewAnalyzer(),
		nilness.Analyzer,
		rowserr.NewAnalyzer(),
		unusedwrite.Analyzer,
	)
}
