package scene

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Answer is the answer to a chat or messages request.
type Answer struct {
	ID          string // x-request-id
	Status      int
	ContentType string
	RetryAfter  string
	Header      string // all headers, formatted
	Raw         string // the body
	Text        string // the model's text
	Finish      string // the last finish_reason
	Complete    bool   // the answer ends with `[DONE]`, or is a whole JSON document
	Err         Error  // from the body, or from an event of a stream
	Cut         bool   // the body broke off
}

// Whole reports whether the answer is complete and without an error.
func (a Answer) Whole() bool {
	return a.Status == http.StatusOK && a.Complete && !a.Cut && a.Err.Type == "" && a.Finish == "stop"
}

// Error is the error object of interface.md.
type Error struct {
	Message  string          `json:"message"`
	Type     string          `json:"type"`
	Code     string          `json:"code"`
	RawParam json.RawMessage `json:"param"`
}

// String implements fmt.Stringer.
func (e Error) String() string {
	return fmt.Sprintf("%s %s (%s): %q", e.Type, e.Code, e.Param(), e.Message)
}

// Param returns error.param: the empty string for null, and "absent" if the member is missing.
func (e Error) Param() string {
	var param *string
	switch err := json.Unmarshal(e.RawParam, &param); {
	case err != nil:
		return "absent"
	case param == nil:
		return ""
	}
	return *param
}

// body has the members of answers and events of both forms.
type body struct {
	Type    string `json:"type"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Delta struct {
		Text string `json:"text"`
		Stop string `json:"stop_reason"`
	} `json:"delta"`
	Choices []struct {
		Message struct{ Content *string } `json:"message"`
		Delta   struct{ Content *string } `json:"delta"`
		Finish  string                    `json:"finish_reason"`
	} `json:"choices"`
	Error *Error `json:"error"`
}

// SendChat sends one request and reads its answer to the end. If ctx ends first, it returns the
// part read so far and the error. It calls each function of onText once, at the first text of a
// stream.
func SendChat(ctx context.Context, client *http.Client, url, key, request string, onText ...func()) (Answer, error) {
	res, err := Do(ctx, client, "POST", url, request, "Authorization", "Bearer "+key)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	a := Answer{ID: res.Header.Get("x-request-id"), Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"),
		RetryAfter: res.Header.Get("Retry-After"), Header: fmt.Sprint(res.Header)}
	var raw []byte
	for in := bufio.NewReader(res.Body); err == nil; {
		var line []byte
		line, err = in.ReadBytes('\n')
		raw = append(raw, line...)
		if bytes.Contains(line, []byte(`"content":"`)) && !bytes.Contains(line, []byte(`"content":""`)) ||
			bytes.Contains(line, []byte(`"text_delta"`)) {
			for _, f := range onText {
				f()
			}
			onText = nil
		}
	}
	a.Raw, a.Cut = string(raw), !errors.Is(err, io.EOF)
	if strings.HasPrefix(a.ContentType, "text/event-stream") {
		a.readEvents(raw)
	} else {
		var b body
		a.Complete = !a.Cut && json.Unmarshal(raw, &b) == nil
		a.take(b)
	}
	return a, ctx.Err()
}

func (a *Answer) readEvents(raw []byte) {
	for line := range bytes.Lines(raw) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			a.Complete = true
			continue
		}
		var b body
		if json.Unmarshal(data, &b) == nil {
			a.take(b)
		}
	}
}

func (a *Answer) take(b body) {
	if b.Error != nil {
		a.Err = *b.Error
	}
	for _, c := range b.Choices {
		for _, piece := range []*string{c.Message.Content, c.Delta.Content} {
			if piece != nil {
				a.Text += *piece
			}
		}
		if c.Finish != "" {
			a.Finish = c.Finish
		}
	}
	for _, part := range b.Content {
		a.Text += part.Text
	}
	a.Text += b.Delta.Text
	if b.Delta.Stop != "" {
		a.Finish = b.Delta.Stop
	}
	a.Complete = a.Complete || b.Type == "message_stop"
}
