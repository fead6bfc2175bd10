package chatmessages

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/messages"
)

// chatPair is how a chat request meets a line of messages.
func chatPair(id wire.Identity, includeUsage bool) wire.Pair {
	return ToMessages(&completions.Request{Request: form.Request{Parameters: wire.Parameters{N: 1, IncludeUsage: includeUsage}}}, id)
}

// messagesPair is how a messages request meets a line of chat completions.
func messagesPair(id wire.Identity) wire.Pair { return ToChat(&messages.Request{}, id) }

// chatWriter makes the writer of a chat client on a line of messages.
func chatWriter(id wire.Identity, includeUsage bool) wire.Writer {
	_, w := chatPair(id, includeUsage).Events()
	return w
}

// messagesWriter makes the writer of a messages client on a line of chat
// completions.
func messagesWriter(id wire.Identity) wire.Writer {
	_, w := messagesPair(id).Events()
	return w
}

// chatWhole writes a whole answer of messages for a chat client.
func chatWhole(raw []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	pieces, err := chatPair(id, true).Render(nil, raw, u)
	return pieces[0], err
}

// messagesWhole writes a whole chat completion for a messages client.
func messagesWhole(raw []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	pieces, err := messagesPair(id).Render(nil, raw, u)
	return pieces[0], err
}
