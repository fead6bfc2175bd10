package translate

import (
	"fmt"
	"strings"
	"testing"
)

// TestFilesOutsideTheInput checks the fields beside the input: images and files make the prompt
// unbounded, but text, labels and citations do not.
func TestFilesOutsideTheInput(t *testing.T) {
	t.Parallel()
	for member, unbounded := range map[string]bool{
		`"documents":[{"title":"t","text":"x"}]`:                                           false,
		`"documents":["x"]`:                                                                false,
		`"documents":[{"image_url":{"url":"https://e.com/a.png"}}]`:                        true,
		`"documents":[{"image":"data:image/png;base64,AA"}]`:                               true,
		`"documents":[{"a":[{"file":{"file_data":"AAAA"}}]}]`:                              true,
		`"documents":[{"url":"https://e.com/a.pdf"}]`:                                      true,
		`"previous_input_messages":[{"role":"user","content":"x"}]`:                        true,
		`"previous_input_messages":null`:                                                   false,
		`"chat_template_kwargs":{"documents":[{"video_url":"https://e.com/v"}]}`:           true,
		`"extra":{"file_uri":"https://e.com/v"}`:                                           true,
		`"meta":{"image":["https://e.com/v"]}`:                                             true,
		`"meta":{"image":""}`:                                                              false,
		`"metadata":{"url":"https://e.com/v"}`:                                             false,
		`"prompt_logprobs":3`:                                                              false,
		`"response_format":{"type":"json_schema","json_schema":{"schema":{"url":"x://"}}}`: false,
	} {
		for form, body := range plain {
			a, err := checkedParams(form, fmt.Sprintf(body, ","+member))
			if err != nil || a.Bound.Unbounded != unbounded {
				t.Errorf("%s with %s: %+v, %v", form, member, a, err)
			}
		}
	}
	for member, unbounded := range map[string]bool{
		`"documents":[{"text":"x"}]`:                                                                      false,
		`"documents":[{"image_url":"https://e.com/a.png"}]`:                                               true,
		`"videos":[{"video_url":{"url":"https://e.com/a"}}]`:                                              true,
		`"x":{"y":[{"file_data":"AAAA"}]}`:                                                                true,
		`"x":{"url":"data:application/pdf;base64,AA"}`:                                                    true,
		`"annotations":[{"type":"file","file":{"content":[{"image_url":{"url":"https://e.com/a"}}]}}]`:    true,
		`"annotations":[{"type":"url_citation","url_citation":{"url":"https://e.com","title":"t"}}]`:      false,
		`"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"image\":1}"}}]`: false,
		`"reasoning_details":[{"type":"reasoning.text","text":"x"}]`:                                      false,
		`"name":"n"`:                        false,
		`"image_url":"https://e.com/a.png"`: true,
	} {
		body := strings.Replace(fmt.Sprintf(plain["chat"], ""), `"content":"x"`, `"content":"x",`+member, 1)
		a, err := checkedParams("chat", body)
		if err != nil || a.Bound.Unbounded != unbounded {
			t.Errorf("%s: %+v, %v", body, a, err)
		}
	}
}
