package translate

import (
	"strings"

	"tollgate/internal/wire"
)

// ClientParam translates param, the name of a field in a provider's error, from the line's form to the
// client's form. It returns param if the name is the same or unknown. params are the parameters of
// the client's request.
func ClientParam(client, line wire.Form, params *wire.Parameters, param string) string {
	if line != wire.FormResponses || client == line {
		return param
	}
	isChat := client == wire.FormChat
	either := func(chat, messages string) string {
		if isChat {
			return chat
		}
		return messages
	}
	field := param
	if i := strings.IndexAny(field, ".["); i >= 0 {
		field = field[:i]
	}
	switch {
	case field == "input":
		return "messages"
	case field == "max_output_tokens" && params.LimitParam != "":
		return params.LimitParam
	case field == "reasoning":
		return either("reasoning_effort", "output_config.effort")
	case strings.HasPrefix(param, "text.format"):
		return either("response_format", "output_config.format")
	case param == "text.verbosity" && isChat:
		return "verbosity"
	case field == "tools":
		tool, member, found := strings.Cut(param, ".")
		switch {
		case found && isChat:
			return tool + ".function." + member
		case found && strings.HasPrefix(member, "parameters"):
			return tool + ".input_schema" + strings.TrimPrefix(member, "parameters")
		}
	}
	return param
}
