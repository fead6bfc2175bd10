package conversation

import "tollgate/internal/wire/rawjson"

// AppendLogprobs appends the elements of a list of logprobs on one line. For a token without bytes
// it calls missing with the token, a JSON value, because the forms differ there.
func AppendLogprobs(dst, list []byte, missing func(dst, token []byte) []byte) []byte {
	for i, entry := range rawjson.Elements(list) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendLogprob(dst, entry, missing), `,"top_logprobs":[`...)
		for k, other := range rawjson.Elements(rawjson.Field(entry, "top_logprobs")) {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendLogprob(dst, other, missing), '}')
		}
		dst = append(dst, "]}"...)
	}
	return dst
}

// appendLogprob appends a token with its logprob and bytes, without the closing brace.
func appendLogprob(dst, entry []byte, missing func(dst, token []byte) []byte) []byte {
	token := rawjson.Field(entry, "token")
	dst = rawjson.AppendOr(append(dst, `{"token":`...), token, `""`)
	dst = rawjson.AppendOr(append(dst, `,"logprob":`...), rawjson.Field(entry, "logprob"), "0")
	dst = append(dst, `,"bytes":`...)
	if bytes := rawjson.Field(entry, "bytes"); bytes != nil {
		return rawjson.AppendLine(dst, bytes)
	}
	return missing(dst, token)
}
