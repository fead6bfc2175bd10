package wire

import (
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// Counter counts tokens where a provider does not say how many there were. It
// uses one public vocabulary (o200k) for all models: an estimate. The
// vocabulary is loaded when it is first needed. The zero value is ready; safe
// for concurrent use.
type Counter struct {
	once  sync.Once
	codec tokenizer.Codec
}

// countedText is the longest text whose tokens are really counted. Longer
// texts are estimated from their first part, so that nobody can burn
// processor time with a huge one.
const countedText = 32 << 10

// bytesPerToken is the estimate where nothing can be counted.
const bytesPerToken = 4

// Count returns the tokens of a text of size bytes, of which text is the
// beginning or the whole.
func (c *Counter) Count(text []byte, size int64) int64 {
	if len(text) == 0 || size <= 0 {
		return 0
	}
	part := text[:min(len(text), countedText)]
	c.once.Do(func() { c.codec, _ = tokenizer.Get(tokenizer.O200kBase) })
	tokens := int64(len(part)+bytesPerToken-1) / bytesPerToken
	if c.codec != nil {
		if n, err := c.codec.Count(string(part)); err == nil {
			tokens = int64(n)
		}
	}
	if size = min(size, maxCount); size > int64(len(part)) {
		tokens = tokens * (size >> 4) / max(int64(len(part))>>4, 1)
	}
	return min(tokens, maxCount)
}

// Tokens that the chat-completions form costs around the text itself.
const (
	perMessage = 4
	perPrompt  = 3
)

// Prompt returns our own count of the prompt's tokens: its messages and tools,
// with perImage for each image.
func (r *ChatRequest) Prompt(c *Counter, perImage int64) int64 {
	var text produced
	tokens := int64(perPrompt)
	for _, message := range elements(r.doc.raw("messages")) {
		tokens += perMessage
		text.note(message)
	}
	for _, name := range []string{"tools", "functions", "response_format"} {
		if raw := r.doc.raw(name); raw != nil {
			text.add(raw)
		}
	}
	tokens += c.Count(text.text, text.bytes)
	tokens += min(r.Bound.Images, maxCount>>20) * min(max(perImage, 0), 1<<20)
	return min(tokens, maxCount)
}

// Estimate is a rough count of the prompt's tokens, without looking into it.
func (r *ChatRequest) Estimate() int64 { return max(r.Bound.TextBytes, 0)/bytesPerToken + perPrompt }

// Estimate is a rough count of the tokens produced so far, without looking
// into the text.
func (m *ChatMeter) Estimate() int64 { return (m.made.bytes + bytesPerToken - 1) / bytesPerToken }
