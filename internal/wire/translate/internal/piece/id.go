package piece

import (
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// MessageID is the id of a translated message.
func MessageID(id wire.Identity) string { return "msg_" + strings.TrimPrefix(id.Request, "req_") }

// ChatID is the id of a translated chat completion.
func ChatID(id wire.Identity) string { return "chatcmpl-" + strings.TrimPrefix(id.Request, "req_") }

// MadeCallID is the id of a tool call that came without one.
func MadeCallID(id wire.Identity, n int) string {
	return "call_" + ToolID(strings.TrimPrefix(id.Request, "req_")) + "_" + strconv.Itoa(n)
}

// ShortID returns the id of a call, a JSON string, with at most longest bytes.
// Longer ids get an ending that tells them apart.
func ShortID(raw []byte, longest int) []byte {
	id := rawjson.Unquote(raw)
	if len(id) <= longest {
		return raw
	}
	return rawjson.Quote(fmt.Sprintf("%s_%08x", strings.ToValidUTF8(id[:longest-9], ""), HashOf(id)))
}
