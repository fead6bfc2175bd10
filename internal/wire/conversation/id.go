package conversation

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// MaxTurnCalls is the limit on calls in one turn: more than any model makes, and few enough to search
// for every result.
const MaxTurnCalls = 256

// ToolID returns the id of a tool call in the alphabet of the messages form: letters, digits, `_`
// and `-`. A changed id ends in a hash.
func ToolID(id string) string {
	changed := strings.Map(func(r rune) rune {
		if r < 128 && isNameByte(byte(r)) {
			return r
		}
		return '_'
	}, id)
	if changed == id {
		return id
	}
	return fmt.Sprintf("%s_%08x", changed, hashOf(id))
}

// hashOf returns a short hash of an id, the same on every node.
func hashOf(id string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(id))
	return sum.Sum32()
}

// ShortID returns the id of a call cut to longest bytes, with a hash at its end.
func ShortID(id string, longest int) string {
	if len(id) <= longest {
		return id
	}
	return fmt.Sprintf("%s_%08x", strings.ToValidUTF8(id[:longest-9], ""), hashOf(id))
}

// NewCallID returns the id for the n-th tool call of an answer, if the provider sent none.
func NewCallID(id wire.Identity, n int) string {
	return "call_" + ToolID(IDSuffix(id)) + "_" + strconv.Itoa(n)
}

// IDSuffix returns the common suffix of all ids of an answer.
func IDSuffix(id wire.Identity) string { return strings.TrimPrefix(id.Request, "req_") }

// CallIDs gives unique ids to the calls of a history. An id depends only on the calls before it, so it
// stays the same when the history grows.
type CallIDs struct {
	// Clean returns an id that the line accepts, of at most longest bytes if longest is not 0.
	Clean func(id string, longest int) string
	used  map[string]int
	given map[*CallPart]string
}

// Of returns the line's id of a call.
func (c *CallIDs) Of(call *CallPart) string {
	if c.used == nil {
		c.used, c.given = map[string]int{}, map[*CallPart]string{}
	}
	id, known := c.given[call]
	if !known {
		id = c.next(call.ID)
		c.given[call] = id
	}
	return id
}

// next returns the id of the next call.
func (c *CallIDs) next(id string) string {
	if id == "" {
		id = fmt.Sprintf("call_%d", len(c.given)+1)
	}
	const ending = 6 // room for a number
	id = c.Clean(id, 0)
	for {
		c.used[id]++
		n := c.used[id]
		if n == 1 {
			return id
		}
		id = fmt.Sprintf("%s_%d", c.Clean(id, ending), n)
	}
}

// Seal returns the seal of the answer's account followed by data, or nil if data is empty.
func Seal(id wire.Identity, data []byte) []byte { return wire.Seal(data, id.Origin) }

// Open returns the state to send to a line, without its seal. It returns nil for state that is sealed for
// another account, and for state without a seal that belongs to another form.
func (s Signature) Open(id wire.Identity, line wire.Form) []byte {
	switch {
	case s.IsSealed():
		return wire.OpenSeal(s.Data, id.Origin)
	case s.Vendor != line || len(s.Data) == 0:
		return nil
	}
	return s.Data
}

// IsSealed reports whether the state is sealed.
func (s Signature) IsSealed() bool { return wire.IsSealed(s.Data) }

// IsClaude reports whether the signature is Claude's own, without a seal. The text with the signature is
// Claude's reasoning, which other models do not get.
func (s Signature) IsClaude() bool {
	return s.Vendor == wire.FormMessages && len(s.Data) > 0 && !s.IsSealed()
}

// LineSignature returns the signature in a JSON string of a provider. It copies the signature, because the
// reader of a stream reuses the memory of an event.
func LineSignature(raw []byte, vendor wire.Form) Signature {
	return Signature{Data: slices.Clone(Contents(raw)), Vendor: vendor}
}

// SignatureOf returns the signature in a JSON string of a client.
func SignatureOf(raw []byte, vendor wire.Form) Signature {
	return Signature{Data: rawjson.Contents(raw), Vendor: vendor}
}
