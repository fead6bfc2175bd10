package translate

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/messages"
)

// chatPair returns the pair for a chat request and a messages line.
func chatPair(id wire.Identity, includeUsage bool) wire.Pair {
	return newChatOnMessages(&completions.Request{Request: form.Request{Parameters: wire.Parameters{N: 1, IncludeUsage: includeUsage}}}, id)
}

// messagesPair returns the pair for a messages request and a chat line.
func messagesPair(id wire.Identity) wire.Pair { return newMessagesOnChat(&messages.Request{}, id) }

// chatWriter returns the writer for a chat client and a messages line.
func chatWriter(id wire.Identity, includeUsage bool) wire.Writer {
	_, w := chatPair(id, includeUsage).Events()
	return w
}

// messagesWriter returns the writer for a messages client and a chat line.
func messagesWriter(id wire.Identity) wire.Writer {
	_, w := messagesPair(id).Events()
	return w
}

// chatWhole translates an answer of messages for a chat client.
func chatWhole(raw []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	pieces, err := chatPair(id, true).Render(nil, raw, u)
	return pieces[0], err
}

// messagesWhole translates a chat completion for a messages client.
func messagesWhole(raw []byte, id wire.Identity, u wire.Usage) ([]byte, error) {
	pieces, err := messagesPair(id).Render(nil, raw, u)
	return pieces[0], err
}

// newChatOnMessages returns the pair for a chat request and a messages line.
func newChatOnMessages(r *completions.Request, id wire.Identity) wire.Pair {
	return New(r, wire.FormMessages, id)
}

// newMessagesOnChat returns the pair for a messages request and a chat line.
func newMessagesOnChat(r *messages.Request, id wire.Identity) wire.Pair {
	return New(r, wire.FormChat, id)
}
