package item

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// AppendLimit appends the limit on output tokens, if any, raised to the form's minimum.
func AppendLimit(dst []byte, limit int64) []byte {
	if limit <= 0 {
		return dst
	}
	return rawjson.AppendMember(dst, "max_output_tokens", strconv.AppendInt(nil, max(limit, wire.LeastResponsesLimit), 10))
}

// AppendReasoning appends the reasoning settings of a reasoning model, and asks for its encrypted
// reasoning. effort may be empty. logprobs asks for logprobs.
func AppendReasoning(dst []byte, t wire.Translation, effort string, summary, logprobs bool) []byte {
	summary = summary && !t.NoSummary
	if t.Reasoning && (effort != "" || summary) {
		var members []byte
		if effort != "" {
			members = rawjson.AppendMember(members, "effort", rawjson.Quote(effort))
		}
		if summary {
			members = rawjson.AppendMember(members, "summary", `"auto"`)
		}
		dst = rawjson.Put(dst, `,"reasoning":{`, members[1:], "}")
	}
	switch {
	case t.Reasoning && t.NoEncrypted:
	case t.Reasoning:
		return append(dst, `,"include":["reasoning.encrypted_content"]`...)
	case logprobs:
		return append(dst, `,"include":["message.output_text.logprobs"]`...)
	}
	return dst
}

// AppendEnd appends the members of every request: nothing is stored. It disables the padding of
// OpenAI's streams.
func AppendEnd(dst []byte, t wire.Translation, stream bool) []byte {
	dst = append(dst, `,"store":false`...)
	if stream {
		dst = append(dst, `,"stream":true`...)
		if t.OpenAI {
			dst = append(dst, `,"stream_options":{"include_obfuscation":false}`...)
		}
	}
	return append(dst, '}')
}

// Effort returns the line's effort for the effort in a field.
func Effort(raw []byte, t wire.Translation, param string) (string, error) {
	raw, err := t.Effort(raw, param)
	if err != nil {
		return "", err
	}
	effort := rawjson.Unquote(raw)
	switch effort {
	case "none", "minimal", "low", "medium", "high", "xhigh", "max":
	default:
		if raw != nil {
			return "", piece.Unsupported(param, "`{param}` must be one of none, minimal, low, medium, high, xhigh and max.")
		}
	}
	return effort, nil
}

// AppendName appends a member with the name of a user or a conversation, if any. A name too long
// for the form is replaced by its hash.
func AppendName(dst []byte, member, name string) []byte {
	const longest = 64
	if name == "" {
		return dst
	}
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return rawjson.AppendMember(dst, member, rawjson.Quote(name))
}

// AppendFormat appends the member `text`. format and verbosity are JSON, or nil.
func AppendFormat(dst, format, verbosity []byte) []byte {
	var members []byte
	if format != nil {
		members = rawjson.AppendMember(members, "format", format)
	}
	if verbosity != nil {
		members = rawjson.AppendMember(members, "verbosity", verbosity)
	}
	if members == nil {
		return dst
	}
	return rawjson.Put(dst, `,"text":{`, members[1:], "}")
}
