package upstream

import (
	"net/url"
	"strings"
)

// vendor is a company with its own adapter, if any, and its domains, separated by spaces.
type vendor struct{ adapter, domains string }

// The vendors whose error notices are known.
var (
	vendorAnthropic  = vendor{"anthropic", "anthropic.com"}
	vendorGoogle     = vendor{"gemini", "googleapis.com"}
	vendorBedrock    = vendor{"", "amazonaws.com api.aws"}
	vendorDeepgram   = vendor{"deepgram", "deepgram.com"}
	vendorDeepSeek   = vendor{"", "deepseek.com"}
	vendorFireworks  = vendor{"", "fireworks.ai"}
	vendorMiniMax    = vendor{"", "minimax.io minimaxi.com minimax.chat"}
	vendorMistral    = vendor{"", "mistral.ai"}
	vendorNVIDIA     = vendor{"", "nvidia.com"}
	vendorOpenRouter = vendor{"", "openrouter.ai"}
	vendorReplicate  = vendor{"replicate", "replicate.com"}
	vendorXAI        = vendor{"", "x.ai"}
	vendorZhipu      = vendor{"", "bigmodel.cn z.ai"}
)

// namingVendors has the domains of vendors that give every error a name. Other vendors' wordings
// do not count at these domains.
var namingVendors = vendor{"", "openai.com azure.com groq.com together.ai together.xyz cerebras.ai perplexity.ai moonshot.ai moonshot.cn " +
	"aliyuncs.com volces.com bytepluses.com cohere.ai cohere.com sambanova.ai nebius.com huggingface.co fal.run"}

// knownVendors lists all vendors above.
var knownVendors = [...]vendor{vendorAnthropic, vendorGoogle, vendorBedrock, vendorDeepgram, vendorDeepSeek, vendorFireworks, vendorMiniMax,
	vendorMistral, vendorNVIDIA, vendorOpenRouter, vendorReplicate, vendorXAI, vendorZhipu, namingVendors}

// isFrom reports whether the answer came from v.
func (s Source) isFrom(v vendor) bool {
	return v.adapter != "" && s.Provider == v.adapter || s.isAt(v)
}

// isAt reports whether the line's address is in a domain of v.
func (s Source) isAt(v vendor) bool {
	u, err := url.Parse(s.BaseURL)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	for domain := range strings.FieldsSeq(v.domains) {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// mayBeRelay reports whether the line's address belongs to no known vendor. A relay, a
// proxy or the operator's own server there may pass on the wording of any vendor with the
// same form.
func (s Source) mayBeRelay() bool {
	if s.BaseURL == "" || s.Provider != "openai" && s.Provider != "anthropic" {
		return false
	}
	for _, v := range knownVendors {
		if s.isAt(v) {
			return false
		}
	}
	return true
}

// mayQuote reports whether an answer may contain a wording of v, because the answer is from v
// or, if v has no adapter of its own, from a possible relay.
func (s Source) mayQuote(v vendor) bool {
	return v == (vendor{}) || s.isFrom(v) || v.adapter == "" && s.mayBeRelay()
}

// reasonOfNumber returns the reason for a numeric code. The same number has different
// meanings at different vendors.
func (s Source) reasonOfNumber(number string) reason {
	if s.isAt(vendorMistral) || s.mayBeRelay() {
		switch number {
		case "1500":
			return reasonModel
		case "3505":
			return reasonBusy
		}
	}
	if s.BaseURL != "" && !s.isAt(vendorZhipu) && !s.mayBeRelay() {
		return reasonNone
	}
	switch number { // Zhipu
	case "1000", "1001", "1002", "1003", "1004", "1110", "1111", "1112", "1113", "1120", "1121", "1220", "1304":
		return reasonAccount
	case "1211":
		return reasonModel
	case "1301":
		return reasonFilter
	case "1302", "1303", "1305":
		return reasonBusy
	case "1230", "1234":
		return reasonServer
	}
	return reasonNone
}

// reasonOfInteraction returns the reason for an error name of Google's Interactions API. Other vendors give
// the same names other meanings.
func reasonOfInteraction(name string) reason {
	switch name {
	case "quota_exceeded": // the requests of a day
		return reasonBusy
	case "safety", "recitation", "language", "prohibited_content", "spii", "blocklist", "content_blocked",
		"image_safety", "image_prohibited_content", "image_recitation":
		return reasonFilter
	}
	return reasonNone
}

// wordings lists how notices without a known error name begin, in lower case. `*` stands for one
// word, and `[redacted]` for text removed by redact. A client's field name may look like a wording,
// so a wording about the gateway's account or a model is never proof.
var wordings = [...]struct {
	vendor vendor // the zero value matches every vendor
	text   string
	reason reason
}{
	{vendorAnthropic, "your credit balance is too low", reasonAccountWords},
	{vendorAnthropic, "you have reached your specified", reasonAccountWords},
	{vendorAnthropic, "this organization has been disabled", reasonAccountWords},
	{vendorAnthropic, "your organization has been disabled", reasonAccountWords},
	{vendorAnthropic, "this credential is only authorized for", reasonAccountWords},
	{vendorBedrock, "invocation of model id * with on-demand throughput", reasonMissing},
	{vendorBedrock, "the provided model identifier is invalid", reasonMissing},
	{vendorBedrock, "the provided model doesn't support on-demand throughput", reasonMissing},
	{vendorBedrock, "you don't have access to the model with the specified model id", reasonMissing},
	{vendorBedrock, "model access is denied due to", reasonMissing},
	{vendorBedrock, "your account is not authorized to invoke this api operation", reasonAccountWords},
	{vendorBedrock, "operation not allowed", reasonAccountWords},
	{vendorDeepgram, "bad request: no such model/language/tier combination found", reasonMissing},
	{vendorDeepgram, "project does not have access to the requested model", reasonMissing},
	{vendorDeepSeek, "model not exist", reasonMissing},
	{vendorDeepSeek, "insufficient balance", reasonAccountWords},
	{vendorFireworks, "account * is suspended", reasonAccountWords},
	{vendorGoogle, "request blocked due to", reasonFilter},
	{vendorGoogle, "project * is not allowed to use publisher model", reasonMissing},
	{vendorMiniMax, "insufficient balance (1008)", reasonAccountWords},
	{vendorMiniMax, "invalid api key (2049)", reasonAccountWords},
	{vendorMiniMax, "login fail: please carry the api secret key", reasonAccountWords},
	{vendorNVIDIA, "function id *: degraded function cannot be invoked", reasonDown},
	{vendorOpenRouter, "* is not a valid model id", reasonMissing},
	{vendorOpenRouter, "this request requires more credits, or fewer max_tokens", reasonUnaffordable},
	{vendorReplicate, "the specified version does not exist", reasonMissing},
	{vendorXAI, "incorrect api key provided: [redacted]", reasonAccountWords},
	{vendorXAI, "incorrect api key provided.", reasonAccountWords},
	{vendorXAI, "your team [redacted] has either used all available credits", reasonAccountWords},
	{vendorXAI, "your newly created team", reasonAccountWords},
	{vendorXAI, "the model * does not exist or your team", reasonMissing},

	{vendor{}, "content exists risk", reasonFilter},                                          // DeepSeek
	{vendor{}, "content violates usage guidelines", reasonFilter},                            // xAI
	{vendor{}, "output blocked by content filtering policy", reasonOutput},                   // Anthropic
	{vendor{}, "the request was rejected because it was considered high risk", reasonFilter}, // Moonshot
	{vendor{}, "<400> internalerror.algo.datainspectionfailed", reasonFilter},                // Qwen
}

// reasonOfWording returns the reason shown by a notice's wording. A wording with a colon
// ("NAME: Extra inputs are not permitted") is ignored, because it is about a parameter.
func (s Source) reasonOfWording(n notice) reason {
	if n.param != "" {
		return reasonNone
	}
	message := strings.ReplaceAll(strings.ToLower(redact(n.message)), "\u2019", "'")
	for _, w := range wordings {
		rest, ok := cutWords(message, w.text)
		if !ok || !s.mayQuote(w.vendor) {
			continue
		}
		if w.vendor == (vendor{}) || !strings.Contains(rest, ": ") {
			return w.reason
		}
	}
	return reasonNone
}

// cutWords reports whether a text begins with words, and returns the rest. In words,
// `*` stands for one word.
func cutWords(text, words string) (rest string, ok bool) {
	before, after, hasWildcard := strings.Cut(words, "*")
	rest, ok = strings.CutPrefix(text, before)
	if !ok || !hasWildcard {
		return rest, ok
	}
	word, _, _ := strings.Cut(rest, " ")
	rest = rest[len(word):]
	if next, _, _ := strings.Cut(after, " "); next != "" { // the word must end with next
		if !strings.HasSuffix(word, next) {
			return "", false
		}
		after = after[len(next):]
	}
	return strings.CutPrefix(rest, after)
}
