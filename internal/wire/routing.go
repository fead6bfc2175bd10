package wire

// RoutingFields returns the names of the fields by which clients of some vendors
// choose another model than the one that is priced here (`lora` of llama.cpp,
// `lora_path` of SGLang), a dearer host or service of it (`compliance` of
// Together, `search_options` of Qwen), or more work for one answer (`best_of`,
// `use_beam_search` and `priority` of vLLM). Only lines get them which say that
// they pass them.
func RoutingFields() []string {
	return []string{
		"provider", "route", "transforms", "models", "plugins", "preset", "fallbacks", "stop_server_tools_when", "safety_model",
		"compliance", "search_options", "lora", "lora_path", "best_of", "use_beam_search", "priority",
	}
}
