package form

import (
	"slices"
	"testing"
)

// TestUnknownUsageIsNoted checks that an unknown member is recorded if it counts something and its
// name may be a label.
func TestUnknownUsageIsNoted(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string][]string{
		`{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":0.1,"queue_time":0.5}`: nil,
		`{"prompt_tokens":1,"advisor_tokens":5}`:                                                 {"advisor_tokens"},
		`{"prompt_tokens":1,"passes":[{"kind":"x","tokens":7}]}`:                                 {"passes"},
		`{"prompt_tokens":1,"video_seconds":0.5,"grounding":{"queries":{"paid":1}}}`:             {"video_seconds", "grounding"},
		`{"prompt_tokens":1,"critic":0,"note":"12","flag":true,"nothing":null,"empty":[]}`:       nil,
		`{"prompt_tokens":1,"what a \"name\"":5,"x{line=\"a\"}":6}`:                              nil,
		`{"a":1,"b":2,"c":3,"d":4,"e":5}`:                                                        {"a", "b", "c", "d"},
	} {
		if got := ReadUsage([]byte(usage)).Unknown; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", usage, got, want)
		}
	}
}
