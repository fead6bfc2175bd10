package fakeprovider

// Completion is a whole answer of one choice: its message and finish_reason as
// JSON, and usage.
func Completion(message, finish string) *Reply {
	r := JSON(200, `{"id":"chatcmpl-fake","object":"chat.completion","created":1700000000,"model":"vendor-model",`+
		`"choices":[{"index":0,"message":`+message+`,"finish_reason":`+finish+`}],`+
		`"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)
	return &r
}

// Events is a stream of frames as they stand.
func Events(frames ...string) *Reply { return &Reply{Events: frames} }

// RawFrame is a frame of one choice: its delta and finish_reason as JSON.
func RawFrame(delta, finish string) string {
	return `{"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1700000000,"model":"vendor-model",` +
		`"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

// JSON is an answer with a JSON body as it stands.
func JSON(status int, body string) Reply {
	return Reply{Status: status, Body: body}
}
