package upstream

import (
	"net/url"
	"strings"
)

// vendor is a company by the adapter that speaks with it alone, if there is one,
// and its domains, with blanks between them.
type vendor struct{ adapter, domains string }

// The vendors whose notices we know.
var (
	vendorAnthropic  = vendor{"anthropic", "anthropic.com"}
	vendorGoogle     = vendor{"gemini", "googleapis.com"}
	vendorBedrock    = vendor{"", "amazonaws.com api.aws"}
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

// others are the domains of vendors that give names for everything: what reads
// like a notice of one of the above is none there.
var others = vendor{"", "openai.com azure.com groq.com together.ai together.xyz cerebras.ai perplexity.ai moonshot.ai moonshot.cn " +
	"aliyuncs.com volces.com bytepluses.com cohere.ai cohere.com sambanova.ai nebius.com huggingface.co fal.run"}

// is tells whether the answer came from a vendor.
func (s Source) is(v vendor) bool {
	return v.adapter != "" && s.Provider == v.adapter || s.at(v)
}

// at tells whether the address that spoke is a vendor's.
func (s Source) at(v vendor) bool {
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

// relays tells whether the answer came from an address that is no vendor's own:
// a relay or a proxy, which may hand on the words of any vendor whose form it
// speaks, or a server of the operator's.
func (s Source) relays() bool {
	if s.BaseURL == "" || s.Provider != "openai" && s.Provider != "anthropic" {
		return false
	}
	for _, v := range [...]vendor{vendorAnthropic, vendorGoogle, vendorBedrock, vendorDeepSeek, vendorFireworks, vendorMiniMax,
		vendorMistral, vendorNVIDIA, vendorOpenRouter, vendorReplicate, vendorXAI, vendorZhipu, others} {
		if s.at(v) {
			return false
		}
	}
	return true
}

// speaks tells whether a vendor's words count: from itself, and from a relay
// where no adapter speaks with the vendor alone.
func (s Source) speaks(v vendor) bool {
	return v == (vendor{}) || s.is(v) || v.adapter == "" && s.relays()
}

// numbered returns the reason of a number that stands for a name. Vendors give
// the same numbers different meanings.
func (s Source) numbered(number string) reason {
	if s.at(vendorMistral) || s.relays() {
		switch number {
		case "1500":
			return reasonModel
		case "3505":
			return reasonBusy
		}
	}
	if s.BaseURL != "" && !s.at(vendorZhipu) && !s.relays() {
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

// wordings are notices of vendors that give no telling name, by how they begin,
// in lower case: `*` stands for one word, `[redacted]` for what redact hides.
// The name of a client's field may stand there as well, so what one says about
// our account or a model is never proof.
var wordings = [...]struct {
	vendor vendor // none: anybody's, where they do no harm to others
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
	{vendorDeepSeek, "model not exist", reasonMissing},
	{vendorDeepSeek, "insufficient balance", reasonAccountWords},
	{vendorFireworks, "account * is suspended", reasonAccountWords},
	{vendorGoogle, "project * is not allowed to use publisher model", reasonMissing},
	{vendorMiniMax, "insufficient balance (1008)", reasonAccountWords},
	{vendorMiniMax, "invalid api key (2049)", reasonAccountWords},
	{vendorMiniMax, "login fail: please carry the api secret key", reasonAccountWords},
	{vendorNVIDIA, "function id *: degraded function cannot be invoked", reasonDown},
	{vendorOpenRouter, "* is not a valid model id", reasonMissing},
	{vendorOpenRouter, "this request requires more credits, or fewer max_tokens", reasonDear},
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

// worded returns the reason of a notice's wording. An error that names a
// parameter ("NAME: Extra inputs are not permitted") is about that.
func (s Source) worded(n notice) reason {
	if n.param != "" {
		return reasonNone
	}
	message := strings.ReplaceAll(strings.ToLower(redact(n.message)), "\u2019", "'")
	for _, w := range wordings {
		rest, ok := cutWords(message, w.text)
		if !ok || !s.speaks(w.vendor) {
			continue
		}
		if w.vendor == (vendor{}) || !strings.Contains(rest, ": ") {
			return w.reason
		}
	}
	return reasonNone
}

// cutWords tells whether a text begins with words, in which `*` stands for one
// word, and returns what follows them.
func cutWords(text, words string) (rest string, ok bool) {
	before, after, wild := strings.Cut(words, "*")
	rest, ok = strings.CutPrefix(text, before)
	if !ok || !wild {
		return rest, ok
	}
	word, _, _ := strings.Cut(rest, " ")
	rest = rest[len(word):]
	if next, _, _ := strings.Cut(after, " "); next != "" { // what stands at the word's end
		if !strings.HasSuffix(word, next) {
			return "", false
		}
		after = after[len(next):]
	}
	return strings.CutPrefix(rest, after)
}
