package chat

import (
	"bytes"
	"errors"
	"fmt"

	"tollgate/internal/call"
	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// wholeAnswer is a checked answer that was not streamed.
type wholeAnswer struct {
	*attempt
	wire.Answer
	raw         []byte // the provider's answer
	contentType string
}

// readWhole buffers and checks an answer.
func (a *attempt) readWhole(got *chatcall.Response) (*wholeAnswer, error) {
	body, err := a.ReadBody(got.Body, got.Length, "stream it, or ask for less")
	if err != nil {
		return nil, err
	}
	if err := rawjson.CheckShape(body); err != nil {
		return nil, upstream.Fail(fault.UpstreamUnavailable, err)
	}
	read, err := a.readAnswer(got.ContentType, body)
	if err != nil {
		return nil, err
	}
	a.traceNames(body)
	a.traceFinishes(body)
	return &wholeAnswer{attempt: a, Answer: read, raw: body, contentType: got.ContentType}, nil
}

// readAnswer reads an answer of status 200. It returns an error if the answer is a disguised failure.
func (a *attempt) readAnswer(contentType string, raw []byte) (wire.Answer, error) {
	answer, err := a.pair.Read(raw)
	if err != nil {
		return nil, call.Malformed(contentType, raw, err)
	}
	f := a.disguisedFailure(answer)
	if f == nil {
		return answer, nil
	}
	u, _ := answer.Usage()
	f.Tokens = upstream.TokensOf(u)
	return nil, f
}

// disguisedFailure returns the failure if an answer of status 200 is an error or is empty, or nil.
func (a *attempt) disguisedFailure(answer wire.Answer) *upstream.Failure {
	switch s := answer.Summary(); {
	case s.Err != nil:
		return a.reportedFailure(s.Err)
	case s.Content && !s.Reasoning && a.on.Line.IsErrorSentence(string(answer.Text())):
		return upstream.Fail(fault.UpstreamError, fmt.Errorf("error sentence: %.200q", answer.Text()))
	case s.Content:
		return nil
	case a.passesEmpty(s.Filtered, s.Limited) && (s.Ended || s.Filtered || s.Limited):
		return nil
	case s.Filtered:
		return upstream.Fail(fault.ContentFilter, errors.New("empty answer, ended by the content filter"))
	case s.Limited && a.params.Limit > 0:
		f := upstream.Fail(fault.MaxTokensTooSmall, errors.New("empty answer, ended by the request's limit"))
		f.Param = a.params.LimitParam
		return f
	}
	return upstream.Fail(fault.EmptyCompletion, errors.New("answer without content"))
}

// passesEmpty reports whether a complete answer without content is passed to the client. Native
// messages and responses always pass, because they have an end reason. From a line of another form
// only filtered or limited answers pass, because the client's form has these reasons too. Chat
// completions never pass.
func (a *attempt) passesEmpty(filtered, limited bool) bool {
	if a.Form == wire.FormChat {
		return false
	}
	return a.on.Form == a.Form || filtered || limited
}

// send settles and sends the answer.
func (w *wholeAnswer) send() error {
	reported, known := w.Usage()
	if w.Disconnected() {
		w.RecordWaste(w.Model, upstream.TokensOf(reported))
		return w.Fail(w.ClientContext().Err())
	}
	w.call.Close()
	summary := w.Summary()
	c := w.count(reported, known, w)
	c.Usage = billable(c.Usage, summary.Filtered, summary.Content || summary.Reasoning)
	pieces, err := w.pair.Render(w.Answer, w.raw, c.Usage)
	if err != nil {
		f := upstream.Fail(fault.UpstreamUnavailable, err)
		w.on.RecordBreak(f)
		w.RecordWaste(w.Model, upstream.TokensOf(reported))
		return w.Fail(f.Fault())
	}
	if w.Store != nil {
		var answer []byte
		if w.Reserve(int64(rawjson.Pieces(pieces[:]).Len())) {
			answer = bytes.Join(pieces[:], nil)
		}
		w.storeAnswer(answer)
	}
	if err := w.SettleFirst(w.bill(c, "")); err != nil {
		return err
	}
	w.SendSettled(w.contentType, pieces[:])
	return nil
}
