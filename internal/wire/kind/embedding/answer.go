package embedding

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// answer is a line's answer to one part.
type answer struct {
	object  []byte   // JSON
	usage   []byte   // the provider's usage, or nil if it has no count
	vectors [][]byte // the elements of `data` in the client's format, in the order of the inputs
	changed bool     // vectors differ from `data`
}

// Read implements kind.Part. It returns an error unless the answer has one vector for each input.
func (p *part) Read(raw []byte) (kind.Quantities, error) {
	object, err := kind.ReadObject(raw)
	if err != nil {
		return nil, err
	}
	p.answer = answer{object: object, vectors: make([][]byte, len(p.inputs)), changed: p.first > 0}
	data := rawjson.Field(object, "data")
	if len(data) == 0 || data[0] != '[' {
		return nil, kind.Incomplete("it has no vectors")
	}
	for position, element := range rawjson.Elements(data) {
		if err := p.readVector(position, element); err != nil {
			return nil, err
		}
	}
	for i, vector := range p.vectors {
		if vector == nil {
			return nil, kind.Incomplete("input %d has no vector", p.first+i)
		}
	}
	reported := kind.Quantities{}
	usage := rawjson.Field(object, "usage")
	reported.AddCount(kind.Input, usage, "prompt_tokens", "total_tokens")
	if _, ok := reported[kind.Input]; ok {
		p.usage = usage
	}
	return reported, nil
}

// readVector reads an element of `data` at a position.
func (p *part) readVector(position int, element []byte) error {
	if len(element) == 0 || element[0] != '{' {
		return kind.Incomplete("`data` has something other than objects")
	}
	index, ok := rawjson.Integer(rawjson.NonNull(rawjson.Field(element, "index")))
	if !ok {
		index = int64(position)
	}
	if index < 0 || index >= int64(len(p.vectors)) || p.vectors[index] != nil {
		return kind.Incomplete("a vector belongs to no input")
	}
	vector := rawjson.Field(element, "embedding")
	converted, err := p.request.inFormat(vector)
	if err != nil {
		return err
	}
	if ok && index == int64(position) && converted == nil && p.first == 0 {
		p.vectors[index] = element
		return nil
	}
	if converted == nil {
		converted = vector
	}
	p.changed = true
	head := strconv.AppendInt([]byte(`{"object":"embedding","index":`), int64(p.first)+index, 10)
	p.vectors[index] = rawjson.Put(head, `,"embedding":`, converted, "}")
	return nil
}

// inFormat returns a vector in the format that the client asked for, or nil if the vector already has this
// format.
func (r *request) inFormat(vector []byte) ([]byte, error) {
	switch {
	case rawjson.IsText(vector):
		bytes, err := base64.StdEncoding.AppendDecode(nil, rawjson.UnquoteBytes(vector))
		if err != nil || len(bytes) == 0 || len(bytes)%4 != 0 {
			return nil, kind.Incomplete("a vector is not base64 of floats")
		}
		if r.format == formatBase64 {
			return nil, nil
		}
		return appendFloats(nil, bytes), nil
	case len(vector) == 0 || vector[0] != '[':
		return nil, kind.Incomplete("a vector is neither a list nor base64")
	}
	var bytes []byte
	n := 0
	for _, number := range rawjson.Elements(vector) {
		if n++; len(number) == 0 || !isNumber(number) {
			return nil, kind.Incomplete("a vector has something other than numbers")
		}
		if r.format == formatBase64 {
			value, err := strconv.ParseFloat(string(number), 32)
			if err != nil {
				return nil, kind.Incomplete("a vector has a number out of range")
			}
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(float32(value)))
		}
	}
	switch {
	case n == 0:
		return nil, kind.Incomplete("a vector is empty")
	case r.format == formatBase64:
		return append(base64.StdEncoding.AppendEncode([]byte{'"'}, bytes), '"'), nil
	}
	return nil, nil
}

// appendFloats appends little-endian 32-bit floats as a JSON array. A value that JSON cannot express
// becomes 0.
func appendFloats(dst, bytes []byte) []byte {
	dst = append(dst, '[')
	for i := 0; i+4 <= len(bytes); i += 4 {
		if i > 0 {
			dst = append(dst, ',')
		}
		value := float64(math.Float32frombits(binary.LittleEndian.Uint32(bytes[i:])))
		if math.IsNaN(value) || math.IsInf(value, 0) {
			value = 0
		}
		dst = strconv.AppendFloat(dst, value, 'g', -1, 32)
	}
	return append(dst, ']')
}

// Answer implements kind.Request. The first part's answer gives the members other than data, model and
// usage.
func (r *request) Answer(parts []kind.Part, c kind.Charged) [][]byte {
	var data [][]byte
	var usage []byte
	first := parts[0].(*part)
	if len(parts) == 1 {
		usage = first.usage
	}
	if len(parts) == 1 && !first.changed {
		data = [][]byte{rawjson.Field(first.object, "data")}
	} else {
		for _, each := range parts {
			for _, vector := range each.(*part).vectors {
				data = append(data, []byte{','}, vector)
			}
		}
		data[0] = []byte{'['}
		data = append(data, []byte{']'})
	}
	if usage == nil {
		n := strconv.FormatInt(c.Used[kind.Input], 10)
		usage = []byte(`{"prompt_tokens":` + n + `,"total_tokens":` + n + `}`)
	}
	return kind.Members(first.object, []kind.Member{
		{Name: "object", Value: [][]byte{[]byte(`"list"`)}},
		{Name: "data", Value: data},
		{Name: "model", Value: [][]byte{rawjson.Quote(c.Model)}},
		{Name: "usage", Value: [][]byte{usage}},
	})
}
