// Command lint owns the choice of analyzers that run beside go vet and
// staticcheck: errors that nobody looks at, errors that are compared wrongly,
// bodies and rows that stay open, values that cannot be what they are taken
// for. Invariant: what it reports is a fault to mend, so a new analyzer comes
// with the mending of what it finds.
package main

import (
	"github.com/jingyugao/rowserrcheck/passes/rowserr"
	"github.com/kisielk/errcheck/errcheck"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"github.com/timakin/bodyclose/passes/bodyclose"
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/passes/unusedwrite"
)

func main() {
	multichecker.Main(
		bodyclose.Analyzer,
		errcheck.Analyzer,
		errorlint.NewAnalyzer(),
		nilness.Analyzer,
		rowserr.NewAnalyzer(),
		unusedwrite.Analyzer,
	)
}
