package wire

// ConversationKey is what the requests of one conversation have in common: how it
// begins. A provider's prompt cache holds the same beginning.
type ConversationKey struct {
	Sum  uint64
	Over bool // what follows differs from request to request
}

// keyBytes is how much of either end of a text tells it from others.
const keyBytes = 512

// Add takes the next text of the opening. Long texts are told apart by their
// length and both ends.
func (o *ConversationKey) Add(text []byte) {
	if o.Over {
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
		sum = fold(sum, text[len(text)-keyBytes:])
		text = text[:keyBytes]
	}
	o.Sum = fold(sum, text)
}

// The constants of the 64-bit FNV-1a hash, which is the same on every node.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Hash returns a number for a text, the same on every node.
func Hash(text string) uint64 {
	return fold(fnvOffset, text)
}

// fold takes a text into a hash.
func fold[T string | []byte](sum uint64, text T) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * fnvPrime
	}
	return sum
}

// Named makes the client's own name of the conversation the whole opening.
func (o *ConversationKey) Named(key []byte) {
	*o = ConversationKey{}
	o.Add(key)
	o.Over = true
}
