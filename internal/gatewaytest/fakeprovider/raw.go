package fakeprovider

// Completion returns an answer with one choice. message and finish are JSON.
func Completion(message, finish string) *Reply {
	r := JSON(200, `{"id":"chatcmpl-fake","object":"chat.completion","created":1700000000,"model":"vendor-model",`+
		`"choices":[{"index":0,"message":`+message+`,"finish_reason":`+finish+`}],`+
		`"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
	return &r
}

// Events returns a stream of unchanged frames.
func Events(frames ...string) *Reply { return &Reply{Events: frames} }

// RawFrame returns a frame with one choice. delta and finish are JSON.
func RawFrame(delta, finish string) string {
	return `{"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1700000000,"model":"vendor-model",` +
		`"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

// JSON returns an answer with a JSON body.
func JSON(status int, body string) Reply {
	return Reply{Status: status, Body: body}
}
