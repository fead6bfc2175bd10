package wire

import (
	"sync"

	"tollgate/internal/wire/rawjson"

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
	if size = min(size, rawjson.MaxCount); size > int64(len(part)) {
		tokens = tokens * (size >> 4) / max(int64(len(part))>>4, 1)
	}
	return min(tokens, rawjson.MaxCount)
}
