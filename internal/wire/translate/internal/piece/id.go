package piece

import (
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// MessageID returns the id of a translated message.
func MessageID(id wire.Identity) string { return "msg_" + strings.TrimPrefix(id.Request, "req_") }

// ChatID returns the id of a translated chat completion.
func ChatID(id wire.Identity) string { return "chatcmpl-" + strings.TrimPrefix(id.Request, "req_") }

// NewCallID returns the id for a tool call without one.
func NewCallID(id wire.Identity, n int) string {
	return "call_" + ToolID(strings.TrimPrefix(id.Request, "req_")) + "_" + strconv.Itoa(n)
}

// ShortID returns the id of a call, a JSON string, cut to longest bytes with a hash at its end.
func ShortID(raw []byte, longest int) []byte {
	id := rawjson.Unquote(raw)
	if len(id) <= longest {
		return raw
	}
	return rawjson.Quote(fmt.Sprintf("%s_%08x", strings.ToValidUTF8(id[:longest-9], ""), HashOf(id)))
}
