package form

import (
	"maps"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// UsageReport is one usage object. Counts that it does not tell are 0; counts of
// zero are counts.
type UsageReport struct {
	wire.Usage
	CountedPrompt, CountedCompletion bool // told
}

// ReadUsage reads a usage object of the chat-completions form in every
// vendor's spelling.
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
	// One family counts reasoning beside the completion, and cached tokens beside
	// the prompt; the total tells.
	if beside := total - prompt - completion; hasTotal && beside > 0 {
		switch {
		case beside == u.Reasoning:
			u.Completion += u.Reasoning
		case !u.CountedPrompt:
		case beside == u.Cached:
			u.Prompt += u.Cached
		case beside == u.Cached+u.Reasoning:
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
			u.Unknown = NoteUnknown(u.Unknown, name, value)
		}
	}
	return u
}

// splitWrites reads how much of the cache writes lives longer than the shortest
// time: OpenAI's counts, or Anthropic's behind a host of another form.
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

// Reports are the usage objects of one answer, of which a stream may have many.
// A count of zero never takes back another one: hosts send zeros for what they
// do not know yet, or have said before.
type Reports struct {
	Usage  wire.Usage
	prompt bool // the prompt was counted
	Final  bool // and the completion, from the finish on: it is the last word
}

// Take adds a report. last says that the answer has finished with it, or had
// before.
func (r *Reports) Take(u UsageReport, last bool) {
	all := &r.Usage
	r.prompt = r.prompt || u.CountedPrompt
	if u.Completion > 0 || u.CountedCompletion && all.Completion == 0 {
		r.Final = last
	}
	keep := func(to *int64, n int64) {
		if n > 0 {
			*to = n
		}
	}
	keep(&all.Prompt, u.Prompt)
	keep(&all.Cached, u.Cached)
	keep(&all.CacheWrite, u.CacheWrite)
	keep(&all.CacheWrite1h, u.CacheWrite1h)
	all.CacheSplit = all.CacheSplit || u.CacheSplit
	keep(&all.Completion, u.Completion)
	keep(&all.Reasoning, u.Reasoning)
	keep(&all.PromptImage, u.PromptImage)
	keep(&all.PromptAudio, u.PromptAudio)
	keep(&all.CompletionImage, u.CompletionImage)
	keep(&all.CompletionAudio, u.CompletionAudio)
	all.Cached = min(all.Cached, all.Prompt)
	all.CacheWrite = min(all.CacheWrite, all.Prompt-all.Cached)
	all.CacheWrite1h = min(all.CacheWrite1h, all.Prompt-all.Cached-all.CacheWrite)
	all.Reasoning = min(all.Reasoning, all.Completion)
	if u.ServiceTier != "" {
		all.ServiceTier = u.ServiceTier
	}
	if u.Unknown != nil {
		all.Unknown = u.Unknown
	}
	if u.HasCost {
		all.CostNano, all.HasCost = u.CostNano, true
	}
	for name, n := range u.ToolCalls {
		all.AddCalls(name, n-all.ToolCalls[name])
	}
}

// Known tells whether usage is the provider's last word.
func (r *Reports) Known() bool { return r.prompt && r.Final }

// With returns the usage, completed by what the rest of the answer shows: its
// tier and the calls of hosted tools. Where the usage is not the last word, more
// calls than it counts may have been made.
func (r *Reports) With(tier string, shown map[string]int64) wire.Usage {
	u := r.Usage
	if tier != "" {
		u.ServiceTier = tier
	}
	switch {
	case u.ToolCalls == nil:
		u.ToolCalls = shown
	case !r.Known():
		u.ToolCalls = maps.Clone(u.ToolCalls)
		for name, n := range shown {
			u.ToolCalls[name] = max(n, u.ToolCalls[name])
		}
	}
	return u
}

// firstField returns the first of the named members that is there.
func firstField(object *rawjson.Index, names ...string) []byte {
	for _, name := range names {
		if value := object.Field(name); value != nil {
			return value
		}
	}
	return nil
}

// firstCount returns the first of the named members that is a count.
func firstCount(object *rawjson.Index, names ...string) (int64, bool) {
	for _, name := range names {
		if n, ok := rawjson.Count(object.Field(name)); ok {
			return n, true
		}
	}
	return 0, false
}
