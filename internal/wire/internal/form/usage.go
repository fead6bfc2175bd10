package form

import (
	"maps"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// UsageReport is one usage object. An absent count is 0; a count of 0 is counted.
type UsageReport struct {
	wire.Usage
	CountedPrompt, CountedCompletion bool // the report has the count
}

// ReadUsage reads a usage object of the chat-completions form in any vendor's spelling.
func ReadUsage(raw []byte) (u UsageReport) {
	if len(raw) == 0 || raw[0] != '{' {
		return u
	}
	var report, in, out rawjson.Index
	report.Read(raw)
	total, hasTotal := firstCount(&report, "total_tokens")
	prompt, ok := firstCount(&report, "prompt_tokens", "input_tokens")
	u.CountedPrompt = ok
	completion, ok := firstCount(&report, "completion_tokens", "output_tokens")
	u.CountedCompletion = ok
	if !ok && u.CountedPrompt && hasTotal && total >= prompt {
		completion, u.CountedCompletion = total-prompt, true
	}
	in.Read(firstField(&report, "prompt_tokens_details", "input_tokens_details", "prompt_token_details"))
	u.Prompt, u.Completion = prompt, completion
	u.Cached, ok = firstCount(&in, "cached_tokens")
	if !ok {
		u.Cached, _ = firstCount(&report, "prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens")
	}
	u.CacheWrite, ok = firstCount(&in, "cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens")
	if !ok {
		u.CacheWrite, _ = firstCount(&report, "cache_write_tokens", "cache_creation_input_tokens")
	}
	u.PromptImage, _ = firstCount(&in, "image_tokens")
	u.PromptAudio, _ = firstCount(&in, "audio_tokens")

	out.Read(firstField(&report, "completion_tokens_details", "output_tokens_details"))
	u.Reasoning, ok = firstCount(&out, "reasoning_tokens")
	if !ok {
		u.Reasoning, _ = firstCount(&report, "reasoning_tokens")
	}
	// Some vendors do not include reasoning in the completion, or cached tokens in the prompt. The
	// total shows it.
	if extra := total - prompt - completion; hasTotal && extra > 0 {
		switch {
		case extra == u.Reasoning:
			u.Completion += u.Reasoning
		case !u.CountedPrompt:
		case extra == u.Cached:
			u.Prompt += u.Cached
		case extra == u.Cached+u.Reasoning:
			u.Prompt, u.Completion = u.Prompt+u.Cached, u.Completion+u.Reasoning
		}
	}
	u.Cached = min(u.Cached, u.Prompt)
	u.CacheWrite = min(u.CacheWrite, u.Prompt-u.Cached)
	if u.CacheWrite > 0 {
		u.splitWrites(&report, &in)
	}
	u.Reasoning = min(u.Reasoning, u.Completion)
	u.CompletionImage, _ = firstCount(&out, "image_tokens")
	u.CompletionAudio, _ = firstCount(&out, "audio_tokens")
	u.ServiceTier = rawjson.Unquote(report.Field("service_tier"))
	u.CostNano, u.HasCost = readCost(&report)

	u.readCalls(&report)
	for name, value := range rawjson.Members(raw) {
		if !IsKnownUsage(name) {
			u.Unknown = AppendUnknown(u.Unknown, name, value)
		}
	}
	return u
}

// splitWrites splits the cache writes by time: OpenAI's counts, or Anthropic's from a host of
// another form.
func (u *UsageReport) splitWrites(report, in *rawjson.Index) {
	var split rawjson.Index
	var long, short int64
	if details := in.Field("cache_write_tokens_details"); details != nil {
		split.Read(details)
		long, _ = firstCount(&split, "ttl_12h_tokens")
		short, _ = firstCount(&split, "ttl_30m_tokens")
	} else {
		split.Read(report.Field("cache_creation"))
		long, _ = firstCount(&split, "ephemeral_1h_input_tokens")
		short, _ = firstCount(&split, "ephemeral_5m_input_tokens")
	}
	u.CacheSplit = long+short > 0
	u.CacheWrite1h = min(long, u.CacheWrite)
	u.CacheWrite -= u.CacheWrite1h
}

// Reports combines the usage objects of one answer. A stream may have many. A zero never replaces
// another count: hosts send zeros for counts not yet known or already reported.
type Reports struct {
	Usage     wire.Usage
	hasPrompt bool // the prompt was counted
	Final     bool // the completion was counted, at or after the finish
}

// Add adds a report. last is set if the answer has finished.
func (r *Reports) Add(u UsageReport, last bool) {
	total := &r.Usage
	r.hasPrompt = r.hasPrompt || u.CountedPrompt
	if u.Completion > 0 || u.CountedCompletion && total.Completion == 0 {
		r.Final = last
	}
	keep := func(to *int64, n int64) {
		if n > 0 {
			*to = n
		}
	}
	keep(&total.Prompt, u.Prompt)
	keep(&total.Cached, u.Cached)
	keep(&total.CacheWrite, u.CacheWrite)
	keep(&total.CacheWrite1h, u.CacheWrite1h)
	total.CacheSplit = total.CacheSplit || u.CacheSplit
	keep(&total.Completion, u.Completion)
	keep(&total.Reasoning, u.Reasoning)
	keep(&total.PromptImage, u.PromptImage)
	keep(&total.PromptAudio, u.PromptAudio)
	keep(&total.CompletionImage, u.CompletionImage)
	keep(&total.CompletionAudio, u.CompletionAudio)
	total.Cached = min(total.Cached, total.Prompt)
	total.CacheWrite = min(total.CacheWrite, total.Prompt-total.Cached)
	total.CacheWrite1h = min(total.CacheWrite1h, total.Prompt-total.Cached-total.CacheWrite)
	total.Reasoning = min(total.Reasoning, total.Completion)
	if u.ServiceTier != "" {
		total.ServiceTier = u.ServiceTier
	}
	if u.Unknown != nil {
		total.Unknown = u.Unknown
	}
	if u.HasCost {
		total.CostNano, total.HasCost = u.CostNano, true
	}
	for name, n := range u.ToolCalls {
		total.AddCalls(name, n-total.ToolCalls[name])
	}
}

// IsFinal reports whether the usage is the provider's final one.
func (r *Reports) IsFinal() bool { return r.hasPrompt && r.Final }

// Complete returns the usage with the tier and the tool calls shown by the rest of the answer. If
// the usage is not final, it may count fewer calls than were made.
func (r *Reports) Complete(tier string, shown map[string]int64) wire.Usage {
	u := r.Usage
	if tier != "" {
		u.ServiceTier = tier
	}
	switch {
	case u.ToolCalls == nil:
		u.ToolCalls = shown
	case !r.IsFinal():
		u.ToolCalls = maps.Clone(u.ToolCalls)
		for name, n := range shown {
			u.ToolCalls[name] = max(n, u.ToolCalls[name])
		}
	}
	return u
}

// firstField returns the first member present.
func firstField(object *rawjson.Index, names ...string) []byte {
	for _, name := range names {
		if value := object.Field(name); value != nil {
			return value
		}
	}
	return nil
}

// firstCount returns the first member with a count.
func firstCount(object *rawjson.Index, names ...string) (int64, bool) {
	for _, name := range names {
		if n, ok := rawjson.Count(object.Field(name)); ok {
			return n, true
		}
	}
	return 0, false
}
