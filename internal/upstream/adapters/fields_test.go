package adapters

import (
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// TestFieldsOfLines tests that an operator cannot set the fields written by the adapter.
func TestFieldsOfLines(t *testing.T) {
	t.Parallel()
	renamed := map[string]any{"fields": map[string]any{"prompt": "text"}}
	for _, test := range []struct {
		provider, kind, model, field string
		options                      map[string]any
		set, omit                    bool // whether each is allowed
	}{
		{"openai", "image", "gpt-image-2", "quality", nil, true, true},
		{"openai", "image", "gpt-image-2", "size", nil, false, false},
		{"openai", "video", "sora-2", "seconds", nil, false, false},
		{"replicate", "image", "owner/easel", "guidance", nil, true, true},
		{"replicate", "image", "owner/easel", "text", nil, true, true},
		{"replicate", "image", "owner/easel", "text", renamed, false, false},
		{"fal", "video", "fal-ai/reel", "duration", nil, false, false},
		{"ark", "image", "seedream-4-0", "response_format", nil, false, false},
		{"dashscope", "image", "wan2.7-image", "watermark", nil, true, true},
		{"gemini", "image", "gemini-nano-banana", "seed", nil, true, true},
		{"gemini", "image", "gemini-nano-banana", "quality", nil, false, true}, // the provider has no such field
		{"anthropic", "image", "none", "anything", nil, true, true},
		{"nobody", "image", "none", "anything", nil, true, true},
	} {
		target := upstream.Target{Provider: test.provider, Options: test.options}
		task := jobcall.Task{Kind: test.kind, Model: test.model}
		set, omit := CheckField(target, task, test.field, false), CheckField(target, task, test.field, true)
		if (set == nil) != test.set || (omit == nil) != test.omit {
			t.Errorf("%s, %s of %s: set %v, omit %v", test.provider, test.field, test.model, set, omit)
		}
	}
}
