package kind

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// maxAnswerDepth is the nesting limit of an answer.
const maxAnswerDepth = 64

// ErrIncomplete reports an answer without all results of its request.
var ErrIncomplete = errors.New("the answer is incomplete")

// ErrNoMemory reports that the budget for answers is used up.
var ErrNoMemory = errors.New("the budget of memory for answers is used up")

// ErrorEvent returns the data of the event that tells a client about a failure.
func ErrorEvent(f *fault.Error) []byte {
	return append([]byte(`{"type":"error",`), bytes.TrimSpace(f.Body())[1:]...)
}

// Incomplete returns an ErrIncomplete with the reason.
func Incomplete(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrIncomplete, fmt.Sprintf(format, args...))
}

// ReadObject returns the JSON object of an answer from its brace on.
func ReadObject(raw []byte) ([]byte, error) {
	object := raw[rawjson.SkipSpace(raw, 0):]
	if len(object) == 0 || object[0] != '{' || !rawjson.IsWithin(object, maxAnswerDepth) {
		return nil, Incomplete("it is not a JSON object")
	}
	return object, nil
}

// CheckStart returns an error if raw, the beginning of a line's answer to a request, is no answer of the kind.
func (d *Definition) CheckStart(body []byte, file *Upload, l ModelLimits, contentType string, raw []byte) error {
	request, err := d.Open(body)
	if err != nil {
		return err
	}
	if r, ok := request.(FileRequest); ok {
		r.SetFile(file)
	}
	if err := request.Check(l); err != nil {
		return err
	}
	part := request.Parts(0)[0]
	streamed, ok := part.(StreamedPart)
	if !ok || !streamed.AsksStream() {
		_, err := part.Read(raw)
		return err
	}
	s := streamed.Stream(bytes.NewReader(raw), contentType, func(int64) bool { return true })
	for {
		switch out, err := s.Next(nil); {
		case errors.Is(err, io.EOF), err == nil && len(out) > 0:
			return nil
		case err != nil:
			return err
		}
	}
}

// AddCount sets the count of a unit to the first of the named members that object has. A value other than a
// count becomes -1, and Believed ignores it.
func (q Quantities) AddCount(unit PriceUnit, object []byte, names ...string) {
	for _, name := range names {
		value := rawjson.NonNull(rawjson.Field(object, name))
		if value == nil {
			continue
		}
		n, ok := rawjson.Count(value)
		if !ok {
			n = -1
		}
		q[unit] = n
		return
	}
}

// Believed returns the counts to charge for a part: the provider's count if it is above 0 and at most the
// bound, otherwise the gateway's count from own. For tokens of an answer, or of text beside sound, a
// provider's 0 counts too. provider and gateway are the numbers of counts from each.
func Believed(reported, bound Quantities, own func() Quantities) (used Quantities, provider, gateway int) {
	used = Quantities{}
	var counted Quantities
	_, sound := bound[InputAudio]
	for unit, most := range bound {
		if n, ok := reported[unit]; ok && n <= most && (n > 0 || n == 0 && (unit.IsOutput() || unit == Input && sound)) {
			used[unit] = n
			provider++
			continue
		}
		if counted == nil {
			counted = own()
		}
		used[unit] = min(counted[unit], most)
		gateway++
	}
	return used, provider, gateway
}

// Members returns an object in pieces, with the members of set. A member of set replaces the member of the
// same name, or follows at the end. Without a value, it only removes that member. The result must have at
// least one member.
func Members(object []byte, set []Member) (pieces [][]byte) {
	done := make([]bool, len(set))
	add := func(name []byte, value [][]byte) {
		separator := byte(',')
		if len(pieces) == 0 {
			separator = '{'
		}
		pieces = append(pieces, append(append([]byte{separator}, rawjson.Quote(string(name))...), ':'))
		pieces = append(pieces, value...)
	}
	for name, value := range rawjson.Members(object) {
		replaced := false
		for i := range set {
			if set[i].Name == string(name) {
				replaced = true
				if !done[i] && set[i].Value != nil {
					done[i] = true
					add(name, set[i].Value)
				}
			}
		}
		if !replaced {
			add(name, [][]byte{value})
		}
	}
	for i := range set {
		if !done[i] && set[i].Value != nil {
			add([]byte(set[i].Name), set[i].Value)
		}
	}
	return append(pieces, []byte("}\n"))
}

// Member is a member of an answer with its value as JSON in pieces.
type Member struct {
	Name  string
	Value [][]byte
}
