package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/upstream/conformance/task"
	"tollgate/internal/upstream/jobcall"
)

// outOfReach is an unreachable provider that counts the calls.
type outOfReach struct{ calls atomic.Int64 }

// RoundTrip implements http.RoundTripper.
func (r *outOfReach) RoundTrip(*http.Request) (*http.Response, error) {
	r.calls.Add(1)
	return nil, errors.New("out of reach")
}

// TestMediaExamples checks the example catalog of images and video: it is accepted without a
// warning, every provider has a line there, each line can ask its provider for every option of its
// models, and the document about providers names it.
func TestMediaExamples(t *testing.T) {
	t.Parallel()
	_, snapshot, told := example(t, "media.yaml")
	provider := &outOfReach{}
	set := adapters.New(adapters.Options{Transport: provider})
	defer set.Close()
	shown := map[string]bool{"sandbox": true}
	for _, l := range snapshot.AllLines() {
		shown[l.Provider] = true
		if !strings.Contains(told, "`"+l.ID+"`") {
			t.Errorf("docs/providers.md does not name the line %s", l.ID)
		}
		options := maps.Clone(l.Options)
		delete(options, "auth") // no cloud is there to ask for a credential
		adapter, err := set.Open(upstream.Target{Line: l.ID, Provider: l.Provider, BaseURL: l.BaseURL, Key: "key-of-the-line", Options: options})
		if err != nil {
			t.Errorf("line %s: %v", l.ID, err)
			continue
		}
		for id := range l.Models {
			m, _ := snapshot.Model(id)
			asked := 0
			for what, w := range offered(t, m) {
				asked++
				w.Model, w.Set, w.Omit, w.Key, w.Reading = l.Models[id], l.Fixed(), l.Omits(), "sub_1", task.Freely
				before := provider.calls.Load()
				if _, err := jobcall.Submit(t.Context(), adapter.(jobcall.Generator), w); provider.calls.Load() == before {
					t.Errorf("line %s does not ask for %s of %s: %v", l.ID, what, id, err)
				}
			}
			if asked == 0 {
				t.Errorf("nothing was asked of %s", id)
			}
		}
	}
	for name, info := range Providers() {
		if makes := slices.Contains(info.Kinds, "image") || slices.Contains(info.Kinds, "video"); makes && !shown[name] {
			t.Errorf("no line of %s", name)
		}
	}
}

// offered returns the tasks allowed by a model's entry: each tier, ratio and length, and each
// further choice with the first of them.
func offered(t *testing.T, m *catalog.Model) map[string]jobcall.Task {
	t.Helper()
	all := map[string]jobcall.Task{}
	add := func(what string, a wish) {
		w, err := a.plan(m)
		if err != nil {
			t.Errorf("model %s, %s: %v", m.ID, what, err)
			return
		}
		all[what] = w
	}
	for _, tier := range m.Tiers {
		for _, ratio := range append([]string{""}, m.Ratios...) {
			for _, seconds := range lengths(m.Durations) {
				what := fmt.Sprintf("%s %s %d s", tier.Name, ratio, seconds)
				add(what, wish{tier: tier.Name, ratio: ratio, seconds: seconds, references: needed(m)})
			}
		}
	}
	first := wish{seconds: m.Durations.Default(), references: needed(m)}
	if m.Kind == catalog.KindImage {
		first.count = m.MaxImages
		add("several", first)
		if m.MaxReferences > 0 {
			first.references = pictures(make([]string, m.MaxReferences)...)
			add("references", first)
		}
	}
	if slices.Contains(m.Roles, "last_frame") {
		first.references = pictures("first_frame", "last_frame")
		add("both frames", first)
	}
	if slices.Contains(m.Roles, "first_frame") {
		first.references = pictures("first_frame")
		add("a first frame", first)
	}
	if slices.Contains(m.Roles, "reference") {
		first.references = pictures(slices.Repeat([]string{"reference"}, int(m.MaxReferences))...)
		add("references with roles", first)
	}
	first.references = needed(m)
	for name, value := range map[string]string{"seed": "7", "negative_prompt": `"rain"`} {
		if slices.Contains(m.Params, name) {
			first.params = fmt.Sprintf(`{%q:%s}`, name, value)
			add(name, first)
		}
	}
	if m.Audio == catalog.SoundOptional {
		for _, value := range []string{"true", "false"} {
			first.params = `{"audio":` + value + `}`
			add("audio "+value, first)
		}
	}
	return all
}

// needed returns the references required by a model of the examples: a clip to change, and the
// first frame if the frame decides the ratio.
func needed(m *catalog.Model) []jobcall.Reference {
	switch {
	case m.PerClip:
		return []jobcall.Reference{task.Named("a.mp4")}
	case m.Kind == catalog.KindVideo && len(m.Ratios) == 0:
		return pictures("first_frame")
	}
	return nil
}

// lengths are those of a model's clips; images have none.
func lengths(d catalog.Durations) []int64 {
	if len(d.List) > 0 {
		return d.List
	}
	return slices.Compact([]int64{d.Min, d.Max})
}

// wish is a user's request.
type wish struct {
	tier, ratio, params string
	count, seconds      int64
	references          []jobcall.Reference
}

// plan returns the task of the request.
func (a wish) plan(m *catalog.Model) (jobcall.Task, error) {
	w := jobcall.Task{Kind: string(m.Kind), Prompt: "a lighthouse", References: a.references}
	if a.params != "" {
		w.Params = json.RawMessage(a.params)
	}
	var (
		p   catalog.Plan
		err error
	)
	if m.Kind == catalog.KindImage {
		p, err = m.PlanImage(catalog.ImageAsk{Resolution: a.tier, Ratio: a.ratio, N: a.count, References: len(a.references)})
	} else {
		length := ""
		if a.seconds > 0 {
			length = fmt.Sprint(a.seconds)
		}
		p, err = m.PlanVideo(catalog.VideoAsk{Resolution: a.tier, Ratio: a.ratio, Duration: length, References: len(a.references)})
	}
	w.Count, w.Tier, w.Larger, w.Ratio, w.Seconds = int(p.Count), p.Tier, p.Larger, p.Ratio, p.Seconds
	w.Width, w.Height, w.Exact = p.Width, p.Height, p.Exact
	return w, err
}

// pictures are references with these roles.
func pictures(roles ...string) []jobcall.Reference {
	list := make([]jobcall.Reference, len(roles))
	for i, role := range roles {
		list[i] = task.Reference("image/png", fmt.Sprintf("https://media.example/%d.png", i), string(fakestudio.Picture(i)))
		list[i].Role = role
	}
	return list
}
