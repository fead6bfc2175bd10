package stability_test

import (
	"context"
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/conformance"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/upstream/stability"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func reading(context.Context) (func(), error) { return func() {}, nil }

// image is a picture to be made; change changes it.
func image(change ...func(*jobcall.Task)) jobcall.Task {
	w := jobcall.Task{Kind: upstream.KindImage, Model: "ultra", Prompt: "a lighthouse", Count: 1,
		Tier: "1K", Ratio: "16:9", Width: 1344, Height: 768, Key: "sub_1", Reading: reading}
	for _, c := range change {
		c(&w)
	}
	return w
}

func model(id string) func(*jobcall.Task) { return func(w *jobcall.Task) { w.Model = id } }

func refs(list ...jobcall.Reference) func(*jobcall.Task) {
	return func(w *jobcall.Task) { w.References, w.Ratio, w.Width, w.Height = list, "", 0, 0 }
}

func params(object string) func(*jobcall.Task) {
	return func(w *jobcall.Task) { w.Params = json.RawMessage(object) }
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Media(t, conformance.Making{
		Provider: stability.Provider,
		Start:    func(t testing.TB) conformance.Studio { return fakestudio.NewStability(t) },
		Tasks: map[string]jobcall.Task{"pictures": image(func(w *jobcall.Task) { w.Count = 3 }),
			"one from another": image(model("sd3.5-large"), refs(conformance.Reference("image/png", "", "abc")))},
		Ticket: func(jobcall.Task) string { return "t-1" },
		Params: `{"seed":41417}`,
	})
}
