package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// interaction is a request of Google's Interactions API, with the documented members that the gateway sends.
type interaction struct {
	Model             string
	Input             []interactionStep
	SystemInstruction string `json:"system_instruction"`
	Tools             []struct {
		Type, Name, Description string
		Parameters              map[string]any
	}
	ResponseModalities []string         `json:"response_modalities"`
	ResponseFormat     []map[string]any `json:"response_format"`
	ServiceTier        string           `json:"service_tier"`
	Store              *bool
	Stream             bool
	GenerationConfig   struct {
		MaxOutputTokens   int64    `json:"max_output_tokens"`
		Seed              int32    `json:"seed"`
		StopSequences     []string `json:"stop_sequences"`
		ThinkingLevel     string   `json:"thinking_level"`
		ThinkingSummaries string   `json:"thinking_summaries"`
		ToolChoice        any      `json:"tool_choice"`
	} `json:"generation_config"`
}

// interactionStep is a step of the input. Each type has some of the members.
type interactionStep struct {
	Type, Signature, ID, Name string
	CallID                    string `json:"call_id"`
	IsError                   bool   `json:"is_error"`
	Content, Result, Summary  []interactionContent
	Arguments                 json.RawMessage
}

// interactionContent is a content of a step.
type interactionContent struct {
	Type, Text, Data string
	MIMEType         string `json:"mime_type"`
}

// ReadInteraction returns the texts, images, calls and results of a request of Google's Interactions API, in
// order. It returns an error for an unknown member, a stored interaction, and steps that Google rejects: an
// empty one, a call without a thought before it in its turn, a thought without a signature, and a result
// without the name of its call.
func ReadInteraction(body []byte) (out []string, err error) {
	var r interaction
	if err := decode(body, true, &r); err != nil {
		return nil, err
	}
	if r.Store == nil || *r.Store {
		return nil, errors.New("the interaction is stored")
	}
	steps := r.Input
	if r.SystemInstruction != "" {
		out = append(out, "text 0 "+r.SystemInstruction)
	}
	names, begun, thinks := map[string]string{}, false, false
	for i, s := range steps {
		add := func(role int, list []interactionContent) {
			for _, c := range list {
				if c.Type == "text" {
					out = append(out, fmt.Sprintf("text %d %s", role, c.Text))
				} else {
					out = append(out, fmt.Sprintf("%s data:%s;base64,%s", c.Type, c.MIMEType, c.Data))
				}
			}
		}
		problem := ""
		switch s.Type {
		case "user_input":
			add(1, s.Content)
			begun, thinks = false, false
			if len(s.Content) == 0 {
				problem = "is empty"
			}
		case "model_output":
			add(2, s.Content)
			if len(s.Content) == 0 {
				problem = "is empty"
			}
		case "thought":
			if s.Signature == "" || begun && !thinks {
				problem = "is a thought without a signature, or not the first step of its turn"
			}
			thinks = true
		case "function_call":
			names[s.ID] = s.Name
			var arguments map[string]any
			d := json.NewDecoder(bytes.NewReader(s.Arguments))
			d.UseNumber()
			err := d.Decode(&arguments)
			out = append(out, fmt.Sprintf("call %s %s %v", s.ID, s.Name, arguments))
			if !thinks || s.ID == "" || err != nil {
				problem = "is a call without a thought, an id or arguments"
			}
		case "function_result":
			text := ""
			for _, c := range s.Result {
				text += "\n" + c.Text
			}
			out = append(out, fmt.Sprintf("result %s %s", s.CallID, strings.TrimPrefix(text, "\n")))
			if begun, thinks = false, false; s.Name == "" || names[s.CallID] != s.Name {
				problem = "is the result of no call"
			}
		default:
			problem = "has an unknown type"
		}
		if s.Type == "model_output" || s.Type == "thought" || s.Type == "function_call" {
			begun = true
		}
		if problem != "" {
			return out, fmt.Errorf("step %d %s", i, problem)
		}
	}
	if len(steps) == 0 || steps[0].Type != "user_input" || begun {
		return out, errors.New("the input begins or ends with the model")
	}
	return out, nil
}
