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

// outOfReach counts the calls to a provider and fails them.
type outOfReach struct{ calls atomic.Int64 }

// RoundTrip implements http.RoundTripper.
func (r *outOfReach) RoundTrip(*http.Request) (*http.Response, error) {
	r.calls.Add(1)
	return nil, errors.New("out of reach")
}

// TestMediaExamples checks the example catalog of images and videos: the catalog is accepted
// without a warning, every provider has a line, each line calls its provider for every option of
// its models, and the document about providers names each line.
func TestMediaExamples(t *testing.T) {
	t.Parallel()
	_, snapshot, text := example(t, "media.yaml")
	provider := &outOfReach{}
	set := adapters.New(adapters.Options{Transport: provider})
	defer set.Close()
	covered := map[string]bool{"sandbox": true}
	for _, l := range snapshot.AllLines() {
		covered[l.Provider] = true
		if !strings.Contains(text, "`"+l.ID+"`") {
			t.Errorf("docs/providers.md does not name the line %s", l.ID)
		}
		options := maps.Clone(l.Options)
		delete(options, "auth") // the test has no cloud that could issue a credential
		adapter, err := set.Open(upstream.Target{Line: l.ID, Provider: l.Provider, BaseURL: l.BaseURL, Key: "key-of-the-line", Options: options})
		if err != nil {
			t.Errorf("line %s: %v", l.ID, err)
			continue
		}
		for id := range l.Models {
			m, _ := snapshot.Model(id)
			tasks := 0
			for taskName, job := range allowedTasks(t, m) {
				tasks++
				job.Model, job.Set, job.Omit, job.Key, job.AcquireRead = l.Models[id], l.FixedFields(), l.OmittedFields(), "sub_1", task.UnlimitedReads
				before := provider.calls.Load()
				if _, err := jobcall.Submit(t.Context(), adapter.(jobcall.Generator), job); provider.calls.Load() == before {
					t.Errorf("line %s does not call its provider for %s of %s: %v", l.ID, taskName, id, err)
				}
			}
			if tasks == 0 {
				t.Errorf("no task for model %s", id)
			}
		}
	}
	for name, info := range Providers() {
		if hasMedia := slices.Contains(info.Kinds, "image") || slices.Contains(info.Kinds, "video"); hasMedia && !covered[name] {
			t.Errorf("no line of %s", name)
		}
	}
}

// allowedTasks returns tasks with every option of a model: each combination of tier, ratio and length,
// and each other option with the defaults.
func allowedTasks(t *testing.T, m *catalog.Model) map[string]jobcall.Task {
	t.Helper()
	all := map[string]jobcall.Task{}
	add := func(taskName string, o options) {
		task, err := o.plan(m)
		if err != nil {
			t.Errorf("model %s, %s: %v", m.ID, taskName, err)
			return
		}
		all[taskName] = task
	}
	for _, tier := range m.Tiers {
		for _, ratio := range append([]string{""}, m.Ratios...) {
			for _, seconds := range lengths(m.Durations) {
				taskName := fmt.Sprintf("%s %s %d s", tier.Name, ratio, seconds)
				add(taskName, options{tier: tier.Name, ratio: ratio, seconds: seconds, references: requiredReferences(m)})
			}
		}
	}
	first := options{seconds: m.Durations.Default(), references: requiredReferences(m)}
	if m.Kind == catalog.KindImage {
		first.count = m.MaxImages
		add("several", first)
		if m.MaxReferences > 0 {
			first.references = imageReferences(make([]string, m.MaxReferences)...)
			add("references", first)
		}
	}
	if slices.Contains(m.Roles, "last_frame") {
		first.references = imageReferences("first_frame", "last_frame")
		add("both frames", first)
	}
	if slices.Contains(m.Roles, "first_frame") {
		first.references = imageReferences("first_frame")
		add("a first frame", first)
	}
	if slices.Contains(m.Roles, "reference") {
		first.references = imageReferences(slices.Repeat([]string{"reference"}, int(m.MaxReferences))...)
		add("references with roles", first)
	}
	first.references = requiredReferences(m)
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

// requiredReferences returns the references that a model of the examples requires: a clip to edit,
// or the first frame if the model takes its ratio from the frame.
func requiredReferences(m *catalog.Model) []jobcall.Reference {
	switch {
	case m.PerClip:
		return []jobcall.Reference{task.ParseReference("a.mp4")}
	case m.Kind == catalog.KindVideo && len(m.Ratios) == 0:
		return imageReferences("first_frame")
	}
	return nil
}

// lengths returns the lengths of a model's clips, or a zero for images.
func lengths(d catalog.Durations) []int64 {
	if len(d.List) > 0 {
		return d.List
	}
	return slices.Compact([]int64{d.Min, d.Max})
}

// options are the options of a task.
type options struct {
	tier, ratio, params string
	count, seconds      int64
	references          []jobcall.Reference
}

// plan returns the task that the catalog plans for the options.
func (o options) plan(m *catalog.Model) (jobcall.Task, error) {
	task := jobcall.Task{Kind: string(m.Kind), Prompt: "a lighthouse", References: o.references}
	if o.params != "" {
		task.Params = json.RawMessage(o.params)
	}
	var (
		p   catalog.Plan
		err error
	)
	if m.Kind == catalog.KindImage {
		p, err = m.PlanImage(catalog.ImageRequest{Resolution: o.tier, Ratio: o.ratio, N: o.count, References: len(o.references)})
	} else {
		length := ""
		if o.seconds > 0 {
			length = fmt.Sprint(o.seconds)
		}
		p, err = m.PlanVideo(catalog.VideoRequest{Resolution: o.tier, Ratio: o.ratio, Duration: length, References: len(o.references)})
	}
	task.Count, task.Tier, task.HasSmallerTier, task.Ratio, task.Seconds = int(p.Count), p.Tier, p.Larger, p.Ratio, p.Seconds
	task.Width, task.Height, task.Exact = p.Width, p.Height, p.Exact
	return task, err
}

// imageReferences returns one image reference for each role.
func imageReferences(roles ...string) []jobcall.Reference {
	list := make([]jobcall.Reference, len(roles))
	for i, role := range roles {
		list[i] = task.Reference("image/png", fmt.Sprintf("https://media.example/%d.png", i), string(fakestudio.Picture(i)))
		list[i].Role = role
	}
	return list
}
