package chat

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"tollgate/internal/call"
	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// wholeAnswer is a good answer without streaming.
type wholeAnswer struct {
	wire.Answer
	call.WholeBody // the provider's bytes
	contentType    string
}

// readWhole buffers and checks an answer.
func (x *chatRequest) readWhole(answer *chatcall.Response) (*wholeAnswer, error) {
	w := &wholeAnswer{contentType: answer.ContentType}
	var err error
	w.WholeBody, err = x.ReadBody(x.Call.Ctx, answer.Body, answer.Length, "stream it, or ask for less")
	if err == nil {
		if shape := rawjson.CheckShape(w.Raw); shape != nil {
			err = upstream.Fail(fault.UpstreamUnavailable, shape)
		}
	}
	if err == nil {
		if w.Answer, err = x.readAnswer(w.contentType, w.Raw); err == nil {
			x.traceNames(w.Raw)
			x.traceFinishes(w.Raw)
			return w, nil
		}
	}
	x.ReleaseBody(&w.WholeBody)
	return nil, err
}

// readAnswer reads an answer of status 200. It returns an error if the answer is a disguised failure.
func (x *chatRequest) readAnswer(contentType string, raw []byte) (wire.Answer, error) {
	a, err := x.pair.Read(raw)
	if err != nil {
		return nil, call.Malformed(contentType, raw, err)
	}
	f := x.disguisedFailure(a)
	if f == nil {
		return a, nil
	}
	u, _ := a.Usage()
	f.Tokens = upstream.TokensOf(u)
	return nil, f
}

// disguisedFailure returns the failure if an answer of status 200 is an error or is empty, or nil.
func (x *chatRequest) disguisedFailure(a wire.Answer) *upstream.Failure {
	switch s := a.Summary(); {
	case s.Err != nil:
		return reported(x.Target, s.Err)
	case s.Content && !s.Reasoning && x.Target.Line.IsErrorSentence(string(a.Text())):
		return upstream.Fail(fault.UpstreamError, fmt.Errorf("error sentence: %.200q", a.Text()))
	case s.Content:
		return nil
	case x.passesEmpty(s.Filtered, s.Limited) && (s.Ended || s.Filtered || s.Limited):
		return nil
	case s.Filtered:
		return upstream.Fail(fault.ContentFilter, errors.New("empty answer, ended by the content filter"))
	case s.Limited && x.params.Limit > 0:
		f := upstream.Fail(fault.MaxTokensTooSmall, errors.New("empty answer, ended by the request's limit"))
		f.Param = x.params.LimitParam
		return f
	}
	return upstream.Fail(fault.EmptyCompletion, errors.New("answer without content"))
}

// passesEmpty reports whether a complete answer without content is passed to the client. Native
// messages and responses always pass, because they have an end reason. From a line of another form
// only filtered or limited answers pass, because the client's form has these reasons too. Chat
// completions never pass.
func (x *chatRequest) passesEmpty(filtered, limited bool) bool {
	if x.Form == wire.FormChat {
		return false
	}
	return x.Target.Form == x.Form || filtered || limited
}

// sendWhole settles and sends a whole answer.
func (x *chatRequest) sendWhole() error {
	reported, known := x.whole.Usage()
	if x.Disconnected() {
		x.recordWaste(upstream.TokensOf(reported))
		return x.Fail(x.ClientContext().Err())
	}
	x.Call.Close()
	summary := x.whole.Summary()
	u := billable(x.usage(reported, known, x.whole.Completion), summary.Filtered, summary.Content || summary.Reasoning)
	parts, err := x.pair.Render(x.whole.Answer, x.whole.Raw, u)
	if err != nil {
		f := upstream.Fail(fault.UpstreamUnavailable, err)
		x.Target.RecordBreak(f)
		x.recordWaste(upstream.TokensOf(reported))
		return x.Fail(f.Fault())
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if x.Store != nil {
		var answer []byte
		if x.reserve(int64(size)) {
			answer = bytes.Join(parts[:], nil)
		}
		x.storeAnswer(answer)
	}
	if err := x.SettleFirst(x.bill(u, "")); err != nil {
		return err
	}
	x.AnswerHeader().Set("Content-Length", strconv.Itoa(size))
	x.begin(x.whole.contentType)
	for _, part := range parts {
		if err := x.Write(part); err != nil {
			break // the answer is settled and stays charged even if the client has disconnected
		}
	}
	return nil
}
