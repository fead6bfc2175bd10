package fakeprovider

// Good returns an answer of a form with the text "all is well", 1000 prompt tokens and 500
// completion tokens.
func Good(form string, stream bool) Reply {
	pieces := []string{"all ", "is well"}
	switch form {
	case "responses":
		if stream {
			return ResponsesStream(1000, 500, pieces...)
		}
		return ResponsesAnswer("all is well", 1000, 500)
	case "messages":
		if stream {
			return NativeStream(1000, 500, pieces...)
		}
		return NativeAnswer("all is well", 1000, 500)
	case "gemini":
		if stream {
			return GeminiStream(1000, 500, pieces...)
		}
		return GeminiAnswer("all is well", 1000, 500)
	case "interactions":
		usage := InteractionUsage(1000, 500)
		if stream {
			return InteractionEvents("completed", usage,
				InteractionStep(0, `{"type":"model_output"}`, InteractionDelta(pieces[0]), InteractionDelta(pieces[1]))...)
		}
		return JSON(200, Interaction("completed", usage, InteractionText("all is well")))
	}
	if stream {
		return Stream(1000, 500, pieces...)
	}
	return Answer("all is well", 1000, 500)
}
