package sandbox

// readChat reads a request in the chat form.
func (r *request) readChat() *problem {
	messages := r.body.Get("messages").Array()
	if len(messages) == 0 {
		return invalid("messages", "Invalid 'messages': empty array.")
	}
	if p := r.checkTemperature(2); p != nil {
		return p
	}
	r.n = int(max(1, min(128, r.body.Get("n").Int())))
	r.limit = smallest(r.body.Get("max_tokens").Int(), r.body.Get("max_completion_tokens").Int())
	r.includeUsage = r.body.Get("stream_options.include_usage").Bool()
	r.serviceTier = r.body.Get("service_tier").String()
	r.reasoning = thinks(r.model) && r.body.Get("reasoning_effort").Str != "none"
	r.stop = words(r.body.Get("stop"))
	r.addTools(r.body.Get("tools"))
	for i, m := range messages {
		text := texts(m.Get("content"), "text")
		if i == len(messages)-1 {
			r.cached = cachedPart(r.prompt)
			if role := m.Get("role").Str; role == "tool" || role == "function" {
				r.toolResult, r.hasToolResult = text, true
			}
		}
		if m.Get("role").Str == "user" {
			r.ask = text
		}
		r.add(text, int(m.Get(`content.#(type=="image_url")#|#`).Int()))
	}
	r.tool = r.chatTools().choose(r)
	switch r.body.Get("response_format.type").Str {
	case "json_object":
		r.json = true
	case "json_schema":
		r.json, r.schema = true, r.body.Get("response_format.json_schema.schema")
	}
	return nil
}

// chatTools reads the tools of the request.
func (r *request) chatTools() toolbox {
	choice := r.body.Get("tool_choice")
	b := toolbox{
		never:  choice.Str == "none",
		always: choice.Str == "required",
		named:  choice.Get("function.name").Str,
	}
	for _, t := range r.body.Get("tools").Array() {
		b.add(t.Get("function.name").Str, t.Get("function.parameters"))
	}
	return b
}
