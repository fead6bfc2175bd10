package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"tollgate/internal/wire/sse"
)

// EachEvent reads a stream written by a translator.
func EachEvent(stream []byte, see func(name string, data []byte) error) error {
	r := sse.NewReader(bytes.NewReader(stream), 64<<20)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case e.Data == nil && (bytes.HasPrefix(e.Raw, []byte(":")) || string(e.Raw) == "\n"): // a keep-alive
			continue
		case e.Offset < 0:
			return fmt.Errorf("an event without data, or in several lines: %q", e.Raw)
		case !utf8.Valid(e.Data):
			return fmt.Errorf("no UTF-8: %q", e.Data)
		}
		if err := see(e.Name, e.Data); err != nil {
			return fmt.Errorf("%w: %s", err, e.Data)
		}
	}
}

// CheckChat returns an error unless a chat stream is well formed: every chunk has the same
// identity, the role comes first, calls are numbered from 0 and begin with id and name, one
// finish_reason ends the choice, the usage comes between finish_reason and [DONE], and an error ends all.
func CheckChat(stream []byte) error {
	var id string
	var created int64
	calls, chunks := 0, 0
	finished, used, ended := false, false, false
	return EachEvent(stream, func(_ string, data []byte) error {
		if ended {
			return errors.New("something behind the end")
		}
		if string(data) == "[DONE]" {
			ended = true
			if !finished {
				return errors.New("[DONE] without finish_reason")
			}
			return nil
		}
		var c struct {
			ID, Object, Model string
			Created           int64
			Error             json.RawMessage
			Usage             json.RawMessage
			Choices           []struct {
				Index        int
				FinishReason *string `json:"finish_reason"`
				Delta        struct {
					Role      string
					ToolCalls []struct {
						Index    *int
						ID       string
						Type     string
						Function struct {
							Name      *string
							Arguments *string
						}
						Custom *struct {
							Name  *string
							Input *string
						}
					} `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal(data, &c); err != nil {
			return err
		}
		if c.Error != nil {
			ended = true
			return nil
		}
		if chunks++; chunks == 1 {
			id, created = c.ID, c.Created
			if len(c.Choices) != 1 || c.Choices[0].Delta.Role != "assistant" {
				return errors.New("no role in the first chunk")
			}
		}
		if c.ID == "" || c.ID != id || c.Created != created || c.Object != "chat.completion.chunk" || c.Model == "" {
			return errors.New("another identity")
		}
		if len(c.Choices) == 0 {
			if !finished || used || c.Usage == nil {
				return errors.New("a chunk without choices")
			}
			used = true
			return nil
		}
		if finished || len(c.Choices) != 1 || c.Choices[0].Index != 0 {
			return errors.New("a choice too many")
		}
		for _, call := range c.Choices[0].Delta.ToolCalls {
			if custom := call.Custom; custom != nil { // the same with other names
				call.Function.Name, call.Function.Arguments = custom.Name, custom.Input
			}
			switch {
			case call.Index == nil || *call.Index > calls || call.Function.Arguments == nil:
				return errors.New("a call out of order")
			case *call.Index == calls && (call.ID == "" || call.Type != wantedType(call.Custom != nil) || call.Function.Name == nil):
				return errors.New("a call without id, type or name")
			case *call.Index < calls && (call.ID != "" || call.Function.Name != nil):
				return errors.New("a call begins twice")
			case *call.Index == calls:
				calls++
			}
		}
		finished = c.Choices[0].FinishReason != nil
		return nil
	})
}

// wantedType returns the type of a call.
func wantedType(custom bool) string {
	if custom {
		return "custom"
	}
	return "function"
}

// CheckMessages returns an error unless a messages stream is well formed: message_start first,
// blocks numbered from 0, one open at a time with deltas of its kind, then message_delta and
// message_stop; an error ends all.
func CheckMessages(stream []byte) error {
	const before, between, inside, hasReason, ended = 0, 1, 2, 3, 4
	state, index, kind := before, 0, ""
	ids := map[string]bool{}
	return EachEvent(stream, func(name string, data []byte) error {
		var e struct {
			Type         string
			Index        *int
			Message      *struct{ ID, Role, Model string }
			ContentBlock *struct {
				Type, ID string
				Name     *string
			} `json:"content_block"`
			Delta *struct {
				Type       string
				StopReason *string `json:"stop_reason"`
			}
			Usage *struct {
				Input  *int64 `json:"input_tokens"`
				Output *int64 `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		want := func(in int) error {
			if state != in {
				return fmt.Errorf("%s in state %d", name, state)
			}
			return nil
		}
		switch {
		case e.Type != name:
			return fmt.Errorf("named %q", name)
		case name == "error" && state != ended:
			state = ended
			return nil
		case name == "message_start":
			if e.Message == nil || e.Message.ID == "" || e.Message.Role != "assistant" || state != before {
				return errors.New("bad start")
			}
			state = between
			return nil
		case name == "message_delta":
			if e.Delta == nil || e.Delta.StopReason == nil || e.Usage == nil || e.Usage.Input == nil || *e.Usage.Input < 0 || e.Usage.Output == nil {
				return errors.New("bad delta")
			}
			err := want(between)
			state = hasReason
			return err
		case name == "message_stop":
			err := want(hasReason)
			state = ended
			return err
		case e.Index == nil || *e.Index != index:
			return errors.New("bad index")
		case name == "content_block_start":
			if e.ContentBlock == nil {
				return errors.New("no block")
			}
			if kind = e.ContentBlock.Type; kind == "tool_use" {
				if e.ContentBlock.ID == "" || ids[e.ContentBlock.ID] || e.ContentBlock.Name == nil {
					return errors.New("a call without id or name")
				}
				ids[e.ContentBlock.ID] = true
			}
			err := want(between)
			state = inside
			return err
		case name == "content_block_delta":
			kindOf := map[string]string{"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking",
				"input_json_delta": "tool_use"}
			if e.Delta == nil || kindOf[e.Delta.Type] != kind {
				return errors.New("a delta of another kind")
			}
			return want(inside)
		case name == "content_block_stop":
			err := want(inside)
			state = between
			index++
			return err
		}
		return fmt.Errorf("unknown event %q", name)
	})
}
