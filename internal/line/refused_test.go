package line

import (
	"context"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
)

// TestRefusedFieldsAreForgotten checks that the fields refused by a model are remembered until the
// line changes its provider or the operator resumes the line.
func TestRefusedFieldsAreForgotten(t *testing.T) {
	t.Parallel()
	revision := int64(0)
	snapshotWith := func(baseURL string) *catalog.Snapshot {
		revision++
		return catalog.NewSnapshot(revision, &catalog.Document{
			Models: []catalog.Model{{ID: "swift", Kind: catalog.KindChat}, {ID: "slow", Kind: catalog.KindChat}},
			Lines: []catalog.LineSpec{{ID: "a", Provider: "fake", BaseURL: baseURL, Enabled: true, Priority: 1, Weight: 1,
				Models: map[string]string{"swift": "x", "slow": "y"}, Forms: []wire.Form{wire.FormChat}}},
		}, map[string]catalog.Provider{"fake": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormChat}}},
			func(string) (string, bool) { return "", false })
	}
	l := New(Options{Open: func(upstream.Target) (chatcall.Adapter, error) { return openError{}, nil }})
	candidateFor := func(s *catalog.Snapshot, model string) (*Candidate, *catalog.Model) {
		t.Helper()
		var candidate *Candidate
		m, _ := s.Model(model)
		_, _ = l.Try(t.Context(), RoutingRequest{Snapshot: s, Model: m, Form: wire.FormChat}, func(_ context.Context, a *Attempt) error {
			candidate = &a.Candidate
			a.End()
			return nil
		})
		if candidate == nil {
			t.Fatal("no line was called")
		}
		return candidate, m
	}
	check := func(step string, s *catalog.Snapshot, refusesSummary bool, limit catalog.LimitField) {
		t.Helper()
		c, m := candidateFor(s, "swift")
		if c.RefusesField("reasoning.summary") != refusesSummary || c.LimitField(m) != limit {
			t.Errorf("%s: refuses the summary: %t, limit field %s; want %t, %s",
				step, c.RefusesField("reasoning.summary"), c.LimitField(m), refusesSummary, limit)
		}
		if c, m := candidateFor(s, "slow"); c.RefusesField("reasoning.summary") || c.LimitField(m) != catalog.LimitMaxTokens {
			t.Errorf("%s: the model slow refuses fields too", step)
		}
	}
	refuse := func(s *catalog.Snapshot, fields ...string) {
		t.Helper()
		c, _ := candidateFor(s, "swift")
		for _, field := range fields {
			c.LearnRefusal(field)
		}
	}
	s := snapshotWith("https://one.example")
	check("at first", s, false, catalog.LimitMaxTokens)
	refuse(s, "reasoning.summary", "max_tokens")
	check("after the refusals", s, true, catalog.LimitMaxCompletionTokens)
	s = snapshotWith("https://one.example")
	check("in another catalog", s, true, catalog.LimitMaxCompletionTokens)
	refuse(s, "max_completion_tokens")
	check("after the refusal of the other limit field", s, true, catalog.LimitMaxTokens)
	s = snapshotWith("https://two.example")
	check("with another provider", s, false, catalog.LimitMaxTokens)
	refuse(s, "reasoning.summary", "max_tokens")
	l.applyControls(map[string]control{"a": {resumes: 1}})
	check("after a resume", s, false, catalog.LimitMaxTokens)
}
