package catalog

import (
	"slices"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestSandboxLines checks after each of several catalogs which lines and models the operator's
// totals leave out.
func TestSandboxLines(t *testing.T) {
	t.Parallel()
	const models = `models:
  - {id: m, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
`
	const (
		sand     = "  - {id: sand, provider: sandbox, models: {m: a}}\n"
		dune     = "  - {id: dune, provider: sandbox, models: {m: a}}\n"
		disabled = "  - {id: real, provider: chatonly, enabled: false, models: {m: r}}\n"
		real     = "  - {id: real, provider: chatonly, models: {m: r}}\n"
		sandReal = "  - {id: sand, provider: chatonly, models: {m: r}}\n"
		realSand = "  - {id: real, provider: sandbox, models: {m: a}}\n"
	)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		check := func(name string, lines, models []string) {
			t.Helper()
			storetest.View(t, db, func(tx *store.Tx) error {
				got, err := SandboxTx(tx)
				if !slices.Equal(got.Lines, lines) || !slices.Equal(got.Models, models) {
					t.Errorf("%s: SandboxTx = %v, want lines %v and models %v", name, got, lines, models)
				}
				return err
			})
		}
		check("no catalog", nil, nil)
		for _, step := range []struct {
			name, lines   string
			want, onModel []string
		}{
			{"a trial", sand, nil, nil},
			{"a trial with a disabled line", sand + disabled, nil, nil},
			{"beside a real line", sand + real, []string{"sand"}, nil},
			{"a second sandbox line", dune + real, []string{"dune", "sand"}, nil},
			{"the real line is gone", dune, []string{"dune", "sand"}, []string{"m"}},
			{"a real line became a sandbox line", dune + realSand, []string{"dune", "sand"}, nil},
			{"a sandbox line became real", sandReal, []string{"dune"}, nil},
			{"and a sandbox line again", sand, []string{"dune"}, nil},
		} {
			apply(t, db, mustParse(t, models+step.lines))
			check(step.name, step.want, step.onModel)
		}
	})
}
