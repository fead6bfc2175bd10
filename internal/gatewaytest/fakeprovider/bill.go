package fakeprovider

// NativeBill returns an answer of the messages form with a usage object.
func NativeBill(usage string) string {
	return `{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[{"type":"text","text":"hi"}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":` + usage + `}`
}

// NativeBillStream returns a stream of the messages form. start is the usage object of the
// message_start event, end of the message_delta event.
func NativeBillStream(start, end string) []string {
	return []string{
		NativeEvent("message_start",
			`"message":{"id":"msg_fake","type":"message","role":"assistant","model":"vendor-model","content":[],`+
				`"stop_reason":null,"stop_sequence":null,"usage":`+start+`}`),
		NativeEvent("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`), NativeText("hi"),
		NativeEvent("content_block_stop", `"index":0`),
		NativeEvent("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":`+end), NativeStop(),
	}
}

// ChatBill returns an answer of the chat form with a usage object.
func ChatBill(usage string) string {
	return `{"id":"chatcmpl-fake","object":"chat.completion","created":1,"model":"vendor-model",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":` + usage + `}`
}

// ChatBillStream returns a stream of the chat form with a usage object.
func ChatBillStream(usage string) []string {
	return []string{
		"data: " + Text("hi") + "\n\n", "data: " + Frame(`{}`, "stop") + "\n\n",
		`data: {"id":"chatcmpl-fake","object":"chat.completion.chunk","created":1,"model":"vendor-model","choices":[],"usage":` + usage + "}\n\n",
		"data: [DONE]\n\n",
	}
}
