package field

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestFilesAreSound checks that every line has a class and a source, and that a file names a field
// once.
func TestFilesAreSound(t *testing.T) {
	t.Parallel()
	seen := 0
	err := fs.WalkDir(files, "data", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parse(path.Base(name), string(text))
		if err != nil {
			return err
		}
		names := map[string]bool{}
		for _, member := range f.fields {
			seen++
			if names[member.Name] {
				t.Errorf("%s names %s twice", name, member.Name)
			}
			names[member.Name] = true
			if !strings.HasPrefix(member.Source, "https://") && member.Source != "docs/interface.md" {
				t.Errorf("%s: the source of %s is %s", name, member.Name, member.Source)
			}
		}
		for member := range names {
			if outer, _, nested := strings.Cut(member, "."); nested && !names[outer] && forms["chat"].fields[outer] == nil {
				t.Errorf("%s: %s lies in a field that no file names", name, member)
			}
		}
		return nil
	})
	if err != nil || seen < 400 {
		t.Errorf("%d fields, %v", seen, err)
	}
}

func TestLinesWithoutClassOrSourceAreRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"a", "a free", "a dear b", "a free b", "a tool s", "a free:x s",
		"client-tool a", "client-tool a b", "client-tool a s b", "hosted-tool a s", "hosted-tool a b c", "tool-option a", "tool-option a b",
		"tool-member a", "tool-member a b", "tool-member a s b"} {
		if _, err := parse("x", "source s https://example.com\n"+line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

// published returns the top-level fields of the published schemas of OpenAI's and Anthropic's
// requests, and of the Open Responses document.
func published() map[string]string {
	return map[string]string{
		"chat": `audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
			modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
			prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
			stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options`,
		"responses": `background background_options context_management conversation include input instructions max_output_tokens
			max_tool_calls metadata model moderation multi_agent parallel_tool_calls personality previous_response_id prompt
			prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream
			stream_options temperature text tool_choice tools top_logprobs top_p truncation user access_programs image
			presence_penalty frequency_penalty`,
		"messages": `billing_policy cache_control compaction container context_management diagnostics fallback_credit_token
			fallbacks inference_geo max_tokens mcp_servers messages metadata model output_config output_format service_tier speed
			stop_sequences stream system temperature thinking thread tool_choice tools top_k top_p`,
	}
}

// TestClientToolsOfForms compares the client tools with the references of the forms. Any other tool
// is hosted.
func TestClientToolsOfForms(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"chat":      "custom function",
		"responses": "apply_patch computer custom function local_shell namespace shell(environment.type=local) tool_search(execution=client)",
		"messages":  "bash_DATE computer_DATE custom memory_DATE text_editor_DATE",
	} {
		var got []string
		for kind, condition := range Form(form).clients {
			if condition != "" {
				kind += "(" + condition + ")"
			}
			got = append(got, kind)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", form, got, want)
		}
	}
	if _, ok := Form("messages").ClientTool("web_search_20250305", "_20250305"); ok {
		t.Error("a hosted tool is the client's")
	}
}

// TestToolLinesAreSound checks that a file names a tool or an option once, with a URL as its
// source.
func TestToolLinesAreSound(t *testing.T) {
	t.Parallel()
	seen, named := 0, map[string]string{}
	for _, f := range slices.Concat(ofForms, readFolder("data/vendors")) {
		own := map[string]bool{}
		for _, r := range f.tools {
			seen++
			if !strings.HasPrefix(r.source, "https://") || own[r.word+r.name] {
				t.Errorf("%s: %s %s is named twice, or its source is %q", f.name, r.word, r.name, r.source)
			}
			own[r.word+r.name] = true
			if r.word != "hosted-tool" {
				continue
			}
			if other := named[r.name]; other != "" && other != r.rest[0] {
				t.Errorf("%s: %s is priced as %s and as %s", f.name, r.name, r.rest[0], other)
			}
			named[r.name] = r.rest[0]
		}
	}
	if seen < 30 {
		t.Errorf("%d lines about tools", seen)
	}
}

func TestFormsHaveEveryPublishedField(t *testing.T) {
	t.Parallel()
	for form, names := range published() {
		for _, name := range strings.Fields(names) {
			if f := Form(form).Find([]byte(name)); f == nil || !f.Documented {
				t.Errorf("data/forms/%s.txt lacks %s", form, name)
			}
		}
	}
}

// TestStrictestClassCounts checks that the form's own documentation counts first, then the
// strictest vendor.
func TestStrictestClassCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form, name string
		class      Class
		documented bool
	}{
		{"chat", "temperature", Free, true}, {"chat", "provider", Costs, false}, {"messages", "provider", Costs, false},
		{"responses", "reasoning", Owned, true}, {"chat", "reasoning", Owned, false}, {"chat", "conversation", Stored, false},
		{"messages", "container", Stored, true}, {"chat", "top_k", Free, false}, {"messages", "top_k", Free, true},
		{"responses", "background", Later, true}, {"chat", "deferred", Later, false}, {"messages", "web_search_options", Tool, false},
		{"chat", "enable_search", Tool, false}, {"chat", "input", Unknown, false}, {"chat", "frobnicate", Unknown, false},
	} {
		f := Form(c.form).Find([]byte(c.name))
		if f == nil {
			f = &FieldRule{}
		}
		if f.Class != c.class || f.Documented != c.documented {
			t.Errorf("%s of %s is %s, documented %v", c.name, c.form, f.Class, f.Documented)
		}
	}
}

func TestSpellingFindsOtherCases(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Tools": "tools", "ENABLE_SEARCH": "enable_search", "ſtream": "stream", "Ko": "", "top_\u212a": "top_k", "tools": "",
		"cachedcontent": "cachedContent", "cachedContent": "", "frobnicate": "",
	} {
		if got := Form("chat").Spelling(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestVendorsByHost(t *testing.T) {
	t.Parallel()
	of := func(host string) *Vendor {
		return VendorOf(func(domain string) bool { return strings.HasSuffix("."+host, "."+domain) })
	}
	for host, want := range map[string]string{"api.x.ai": "xai", "api.openai.com": "openai", "dashscope-intl.aliyuncs.com": "dashscope"} {
		if v := of(host); v == nil || v.Name != want {
			t.Errorf("%s is %v", host, v)
		}
	}
	if of("x.ai.example.com") != nil || of("10.0.0.7") != nil {
		t.Error("a host of nobody has a vendor")
	}
	if v := of("api.openai.com"); v.Documents("top_k") || !of("10.0.0.7").Documents("top_k") || of("10.0.0.7").Documents("frobnicate") {
		t.Error("a vendor documents what it does not, or an unknown host gets no vendor's fields")
	}
	if !slices.IsSortedFunc(Vendors(), func(a, b *Vendor) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("vendors have no order")
	}
}
