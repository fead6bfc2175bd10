package chat

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"tollgate/internal/bounded"
	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// wholeAnswer is a good answer without streaming.
type wholeAnswer struct {
	wire.Answer
	raw         []byte // the provider's bytes
	contentType string
	reserved    int64 // bytes taken from the budget
}

// readWhole buffers and checks an answer.
func (x *chatRequest) readWhole(answer *chatcall.Response) (*wholeAnswer, error) {
	w := &wholeAnswer{contentType: answer.ContentType}
	err := x.readAll(w, answer)
	if err == nil {
		if shape := rawjson.CheckShape(w.raw); shape != nil {
			err = upstream.Fail(fault.UpstreamUnavailable, shape)
		}
	}
	if err == nil {
		if w.Answer, err = x.readAnswer(w.contentType, w.raw); err == nil {
			x.traceNames(w.raw)
			x.traceFinishes(w.raw)
			return w, nil
		}
	}
	x.budget.release(w.reserved)
	return nil, err
}

// readAll reads a body of up to MaxAnswer bytes. It reserves the bytes beyond unbudgetedBytes from the
// budget. The caller must release them, even if readAll returns an error.
func (x *chatRequest) readAll(w *wholeAnswer, answer *chatcall.Response) error {
	longest, length := x.opts.MaxAnswer, answer.Length
	if length == 0 {
		length = -1
	}
	var size int64
	var full bool
	raw, err := bounded.Read(io.LimitReader(answer.Body, longest+1), min(length, longest), longest, func(n int64) error {
		size += n
		more := max(0, size-unbudgetedBytes) - w.reserved
		if full = !x.budget.reserve(more); full {
			return errNoMemory
		}
		w.reserved += more
		return nil
	})
	switch {
	case full:
		return outOfMemory()
	case err != nil:
		return upstream.ConnectionFailure(x.call.ctx, err)
	case int64(len(raw)) > longest:
		// The failure is final: the line is not at fault, and another line's answer would be as long.
		return fault.New(fault.UpstreamUnavailable,
			"The answer is longer than the %s that may come in one piece. You were not charged; please stream it, or ask for less.",
			fault.Bytes(longest)).
			WithCause(errors.New("the answer is longer than max_answer"))
	}
	w.raw = raw
	return nil
}

// readAnswer reads an answer of status 200. It returns an error if the answer is a disguised failure.
func (x *chatRequest) readAnswer(contentType string, raw []byte) (wire.Answer, error) {
	a, err := x.pair.Read(raw)
	if err != nil {
		return nil, malformed(contentType, raw, err)
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
		return reported(x.target, s.Err)
	case s.Content && !s.Reasoning && x.target.Line.IsErrorSentence(string(a.Text())):
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
	return x.target.Form == x.Form || filtered || limited
}

// sendWhole settles and sends a whole answer.
func (x *chatRequest) sendWhole() error {
	reported, known := x.whole.Usage()
	if x.disconnected() {
		x.recordWaste(upstream.TokensOf(reported))
		return x.fail(x.clientCtx.Err())
	}
	x.call.close()
	summary := x.whole.Summary()
	u := billable(x.usage(reported, known, x.whole.Completion), summary.Filtered, summary.Content || summary.Reasoning)
	parts, err := x.pair.Render(x.whole.Answer, x.whole.raw, u)
	if err != nil {
		f := upstream.Fail(fault.UpstreamUnavailable, err)
		x.target.RecordBreak(f)
		x.recordWaste(upstream.TokensOf(reported))
		return x.fail(f.Fault())
	}
	if err := x.settleFirst(u); err != nil {
		return err
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(size))
	x.begin(x.whole.contentType)
	for _, part := range parts {
		if err := x.write(part); err != nil {
			break // the answer is settled and stays charged even if the client has disconnected
		}
	}
	return nil
}
