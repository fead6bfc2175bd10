package wire

// ConversationKey identifies a conversation by the beginning of its requests. A provider's prompt
// cache holds the same beginning.
type ConversationKey struct {
	Sum      uint64
	Complete bool // further texts differ between the requests of the conversation
}

// keyBytes is the number of bytes hashed at either end of a long text.
const keyBytes = 512

// Add adds the next text of the beginning. Of a long text it hashes the length and both ends.
func (o *ConversationKey) Add(text []byte) {
	if o.Complete {
		return
	}
	sum := o.Sum
	if sum == 0 {
		sum = fnvOffset
	}
	for size := len(text); size > 0; size >>= 8 {
		sum = (sum ^ uint64(size&0xff)) * fnvPrime
	}
	if len(text) > 2*keyBytes {
		sum = Fold(sum, text[len(text)-keyBytes:])
		text = text[:keyBytes]
	}
	o.Sum = Fold(sum, text)
}

// The constants of the 64-bit FNV-1a hash, the same on every node.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Hash returns a hash of text, the same on every node.
func Hash(text string) uint64 {
	return Fold(fnvOffset, text)
}

// Fold adds text to a 64-bit FNV-1a hash.
func Fold[T string | []byte](sum uint64, text T) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * fnvPrime
	}
	return sum
}

// SetName identifies the conversation by the client's own name for it, and by nothing else.
func (o *ConversationKey) SetName(key []byte) {
	*o = ConversationKey{}
	o.Add(key)
	o.Complete = true
}
