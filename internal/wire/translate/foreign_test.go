package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/wiretest"
	"tollgate/internal/wire/jobrequest"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestEveryGateLooksIntoAllObjects tests each kind of body.
func TestEveryGateLooksIntoAllObjects(t *testing.T) {
	t.Parallel()
	gates := map[string]func([]byte) error{
		"chat":      func(b []byte) error { _, err := completions.Open(b); return err },
		"responses": func(b []byte) error { _, err := responses.Open(b); return err },
		"messages":  func(b []byte) error { _, err := messages.Open(b); return err },
		"images":    func(b []byte) error { _, err := jobrequest.OpenImage(b); return err },
		"videos":    func(b []byte) error { _, err := jobrequest.OpenVideo(b); return err },
	}
	for path, body := range map[string]string{
		"input[0].content[1].type": `{"input":[{"content":[{"type":"input_text"},{"type":"input_text","text":"x","typ\u0065":"input_file",` +
			`"file_id":"f"}]}]}`,
		"tools[0].type":          `{"tools":[{"type":"function","name":"f","type":"web_search"}]}`,
		"tools[0].tools[1].type": `{"tools":[{"type":"namespace","tools":[1,{"type":"function","type":"web_search"}]}]}`,
		"search_parameters.mode": `{"search_parameters":{"mode":"off","mode":"on"}}`,
		"source.type":            `{"source":{"type":"text","data":"{},[]:","type":"file"}}`,
		"x.a.b":                  `{"x":{"a":{"c":[1,2,{"b":1}],"b":1,"b":2}}}`,
		"x.":                     `{"x":{"":1,"":2}}`,
		"model":                  `{"model":"a","model":"b"}`,
	} {
		for form, open := range gates {
			err := open([]byte(body))
			if code, _ := wiretest.CodeOf(t, err); code != fault.InvalidJSON || !strings.Contains(err.Error(), "`"+path+"`") {
				t.Errorf("%s, %s: %v, want the path %s", form, body, err, path)
			}
		}
	}
}

// TestAudioIsRefusedHoweverItIsWrapped checks that audio is rejected everywhere, because it has no
// price. The value of the map is the path of the field inside the part.
func TestAudioIsRefusedHoweverItIsWrapped(t *testing.T) {
	t.Parallel()
	parts := map[string]string{
		`{"type":"input_audio","input_audio":{"data":"AA","format":"mp3"}}`:                    "",
		`{"type":"audio_url","audio_url":{"url":"https://h/x"}}`:                               "",
		`{"audio_url":{"url":"https://h/x"}}`:                                                  ".audio_url",
		`{"type":"Audio","source":{}}`:                                                         ".type",
		`{"type":"\u0061udio_embeds","x":1}`:                                                   ".type",
		`{"type":"file","file":{"file_data":"data:audio/mpeg;base64,AA"}}`:                     ".file.file_data",
		`{"type":"file","file":{"file_data":"DATA:\u0041udio\/mpeg;base64,AA"}}`:               ".file.file_data",
		`{"type":"file","file":{"file_data":" data:\naudio/mpeg;base64,AA"}}`:                  ".file.file_data",
		`{"type":"file","file":{"file_data":"AAAA","filename":"a.MP3"}}`:                       ".file.filename",
		`{"type":"file","file":{"file_data":"AAAA","format":"audio/wav"}}`:                     ".file.format",
		`{"type":"file","file":{"data":"AAAA","media_type":"audio/wav"}}`:                      ".file.media_type",
		`{"type":"file","file":{"data":"AAAA","mimeType":"Audio/wav"}}`:                        ".file.mimeType",
		`{"type":"file","file":{"data":"AAAA","Mime_Type":"audio/wav"}}`:                       ".file.Mime_Type",
		`{"type":"image_url","image_url":{"url":"data:audio/ogg;base64,AA"}}`:                  ".image_url.url",
		`{"type":"image_url","image_url":{"url":"https://h/a/b.wav?x=1#y"}}`:                   ".image_url.url",
		`{"type":"file","file":{"file_data":"data:application/ogg;base64,AA"}}`:                ".file.file_data",
		`{"type":"file","file":{"data":"AAAA","mime_type":"application/ogg"}}`:                 ".file.mime_type",
		`{"type":"input_file","file_url":"https://h/speech.m4a"}`:                              ".file_url",
		`{"type":"input_file","filename":"a.wav","file_data":"AA"}`:                            ".filename",
		`{"type":"nobody_knows","list":[1,{"input_audio":"AA"}]}`:                              ".list[1].input_audio",
		`{"type":"document","source":{"type":"base64","media_type":"audio/mpeg","data":"AA"}}`: ".source.media_type",
		`{"type":"document","source":{"type":"url","url":"https://h/x.flac"}}`:                 ".source.url",
		`{"type":"image","source":{"type":"base64","media_type":"audio/mpeg","data":"AA"}}`:    ".source.media_type",
	}
	for part, within := range parts {
		for form, body := range map[string][2]string{
			"chat":      {`"messages":[{"role":"user","content":[%s]}]`, "messages[0].content[0]"},
			"responses": {`"input":[{"role":"user","content":[%s]}]`, "input[0].content[0]"},
			"a result":  {`"input":[{"type":"function_call_output","call_id":"c","output":[%s]}]`, "input[0].output[0]"},
			"an item":   {`"input":[%s]`, "input[0]"},
			"messages":  {`"messages":[{"role":"user","content":[%s]}]`, "messages[0].content[0]"},
			"in turn": {`"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[%s]}]}]`,
				"messages[0].content[0].content[0]"},
			"in a file": {`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[%s]}}]}]`,
				"messages[0].content[0].source.content[0]"},
			"a system": {`"messages":[{"role":"user","content":"x"}],"system":[%s]`, "system[0]"},
		} {
			var err error
			text := fmt.Sprintf(body[0], part)
			switch form {
			case "chat":
				r, failed := completions.Open([]byte("{" + text + "}"))
				if err = failed; err == nil {
					err = withoutPrices(r.Check(), r)
				}
			case "responses", "a result", "an item":
				if form == "an item" && !strings.Contains(part, `"type"`) {
					continue // an item without a type is a message
				}
				r, failed := responses.Open([]byte("{" + text + "}"))
				if err = failed; err == nil {
					err = r.Check()
				}
			default:
				r, failed := messages.Open([]byte(`{"max_tokens":5,` + text + "}"))
				if err = failed; err == nil {
					err = r.Check()
				}
			}
			code, param := wiretest.CodeOf(t, err)
			if code != fault.InvalidRequest || !strings.HasPrefix(param, body[1]+within) {
				t.Errorf("%s: %s: %s, param %q, want %s", form, text, code, param, body[1]+within)
			}
		}
	}
}

// withoutPrices returns err, or the refusal of a model without prices for options.
func withoutPrices(err error, r wire.Request) error {
	if err == nil && len(r.Params().Options) > 0 {
		return fault.At(fault.InvalidRequest, r.Params().Options[0].Param, "no price")
	}
	return err
}

func TestWhatIsNoAudioPasses(t *testing.T) {
	t.Parallel()
	for _, part := range []string{
		`{"type":"text","text":"data:audio/mp3;base64,AA"}`, `{"type":"text","text":"audio"}`,
		`{"type":"image_url","image_url":{"url":"https://h/audio/a.png?f=b.mp3"}}`,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}`,
		`{"type":"file","file":{"file_data":"data:application/pdf;base64,AA","filename":"audio.mp3.pdf"}}`,
		`{"type":"video_url","video_url":{"url":"https://h/a.mp4"},"audio":null}`, `{"type":"nobody_knows","audio":false,"format":"png"}`,
	} {
		r, err := completions.Open([]byte(`{"messages":[{"role":"user","content":[` + part + `]}]}`))
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			t.Errorf("%s: %v", part, err)
		}
	}
	r := openMessages(t,
		`{"max_tokens":5,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"audio":"x",`+
			`"file_id":"y"}}]}]}`)
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

func TestAudioOutputIsRefused(t *testing.T) {
	t.Parallel()
	all := checks()
	all["chat"] = func(member string) error {
		r, err := completions.Open([]byte(`{"messages":[{"role":"user","content":"x"}],` + member + `}`))
		if err != nil {
			return err
		}
		return withoutPrices(r.Check(), r)
	}
	for _, form := range []string{"chat", "responses", "messages"} {
		for member, want := range map[string]string{`"modalities":["text","Audio"]`: "modalities", `"audio":{"voice":"x"}`: "audio"} {
			if code, param := wiretest.CodeOf(t, all[form](member)); code != fault.InvalidRequest || !strings.HasPrefix(param, want) {
				t.Errorf("%s: %s: %s, param %q", form, member, code, param)
			}
		}
	}
}

// TestRoutingFieldsAreNoted tests every form, and null values.
func TestRoutingFieldsAreNoted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"provider", "route", "transforms", "models", "preset", "fallbacks", "stop_server_tools_when", "safety_model", "compliance",
		"search_options", "lora", "lora_path", "best_of", "use_beam_search", "priority", "compound_custom", "extra_body",
		"candidate_count", "num_return_sequences", "kv_transfer_params", "bootstrap_host", "lora_request", "chat_template",
	} {
		chat, err := completions.Open([]byte(wiretest.ChatBody(`"` + name + `":{"a":1}`)))
		if err != nil || chat.Check() != nil || !slices.Equal(chat.Routing, []string{name}) {
			t.Errorf("chat, %s: %v, %v", name, chat.Routing, err)
		}
		responses := pairtest.Responses(t, `{"input":"x","`+name+`":{"a":1}}`)
		messages := openMessages(t, `{"max_tokens":5,"messages":[{"role":"user","content":"x"}],"`+name+`":{"a":1}}`)
		if err := messages.Check(); err != nil || !slices.Equal(responses.Routing,
			[]string{name}) || !slices.Equal(messages.Routing, []string{name}) {
			t.Errorf("%s: %v, %v, %v", name, responses.Routing, messages.Routing, err)
		}
		null, err := completions.Open([]byte(wiretest.ChatBody(`"` + name + `":null`)))
		if err != nil || null.Check() != nil || null.Routing != nil {
			t.Errorf("null %s: %v, %v", name, null.Routing, err)
		}
	}
}

// openMessages opens and checks a valid body.
func openMessages(t *testing.T, body string) *messages.Request {
	t.Helper()
	r, err := messages.Open([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for range 2 { // a second check has the same result
		if err := r.Check(); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	return r
}
