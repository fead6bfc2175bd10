package wire

// ConversationKey identifies a conversation by a hash of the texts at the beginning of each of its
// requests. A provider's prompt cache identifies a conversation in the same way.
type ConversationKey struct {
	Sum      uint64 // the hash; 0 before the first text
	Complete bool   // Add ignores further texts, because they differ between the requests
}

// keyBytes is the number of bytes hashed at either end of a long text.
const keyBytes = 512

// Add adds the next text of the request to the hash. For a long text, only the length and both ends
// are hashed.
func (k *ConversationKey) Add(text []byte) {
	if k.Complete {
		return
	}
	sum := k.Sum
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
	k.Sum = Fold(sum, text)
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

// SetName identifies the conversation only by name, the client's own name for the conversation.
func (k *ConversationKey) SetName(name []byte) {
	*k = ConversationKey{}
	k.Add(name)
	k.Complete = true
}
