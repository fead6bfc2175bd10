package wire

import (
	"sync"

	"tollgate/internal/wire/rawjson"

	"github.com/tiktoken-go/tokenizer"
)

// Counter estimates token counts for answers without usage. It uses one public vocabulary (o200k)
// for all models, loaded on first use. The zero value is ready to use. It is safe for concurrent
// use.
type Counter struct {
	once  sync.Once
	codec tokenizer.Codec
}

// maxCounted is the longest text in bytes to be tokenized. The rest of a longer text is
// extrapolated, so that a huge text does not cost much CPU time.
const maxCounted = 32 << 10

// bytesPerToken is the estimate if the tokenizer fails.
const bytesPerToken = 4

// Count returns the tokens of a text of size bytes. text is the beginning of the text, or all of
// it.
func (c *Counter) Count(text []byte, size int64) int64 {
	if len(text) == 0 || size <= 0 {
		return 0
	}
	head := text[:min(len(text), maxCounted)]
	c.once.Do(func() { c.codec, _ = tokenizer.Get(tokenizer.O200kBase) })
	tokens := int64(len(head)+bytesPerToken-1) / bytesPerToken
	if c.codec != nil {
		if n, err := c.codec.Count(string(head)); err == nil {
			tokens = int64(n)
		}
	}
	if size = min(size, rawjson.MaxCount); size > int64(len(head)) {
		tokens = tokens * (size >> 4) / max(int64(len(head))>>4, 1)
	}
	return min(tokens, rawjson.MaxCount)
}
