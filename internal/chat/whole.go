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

// whole is an answer that is not streamed, judged to be good.
type whole struct {
	wire.Answer
	raw         []byte // as it came
	contentType string
	reserved    int64 // bytes taken from the budget
}

// readWhole buffers and judges an answer.
func (x *exchange) readWhole(answer *chatcall.Response) (*whole, error) {
	w := &whole{contentType: answer.ContentType}
	err := x.readAll(w, answer)
	if err == nil {
		err = misshapen(rawjson.CheckShape(w.raw))
	}
	if err == nil {
		if w.Answer, err = x.judge(w.contentType, w.raw); err == nil {
			x.traceNames(w.raw)
			x.traceFinishes(w.raw)
			return w, nil
		}
	}
	x.budget.give(w.reserved)
	return nil, err
}

// readAll reads a body up to the longest answer. What it holds beyond the
// ordinary, also with an error, is taken from the budget.
func (x *exchange) readAll(w *whole, answer *chatcall.Response) error {
	longest, announced := x.opts.MaxAnswer, answer.Length
	if announced == 0 {
		announced = -1
	}
	var held int64
	var full bool
	raw, err := bounded.Read(io.LimitReader(answer.Body, longest+1), min(announced, longest), longest, func(n int64) error {
		held += n
		more := beyond(held) - w.reserved
		if full = !x.budget.take(more); full {
			return errNoMemory
		}
		w.reserved += more
		return nil
	})
	switch {
	case full:
		return noMemory()
	case err != nil:
		return upstream.Interrupted(x.run.ctx, err)
	case int64(len(raw)) > longest:
		// Nor is it here, and another line would answer as much.
		return fault.New(fault.UpstreamUnavailable,
			"The answer is longer than the %s that may come in one piece. You were not charged; please stream it, or ask for less.",
			fault.Bytes(longest)).
			WithCause(errors.New("the answer is longer than max_answer"))
	}
	w.raw = raw
	return nil
}

// misshapen is the verdict on JSON that must not be read; nil: it may be.
func misshapen(err error) error {
	if err == nil {
		return nil
	}
	return upstream.Fail(fault.UpstreamUnavailable, err)
}

// judge reads an answer of status 200 and finds the failures that look like
// one.
func (x *exchange) judge(contentType string, raw []byte) (wire.Answer, error) {
	a, err := x.pair.Read(raw)
	if err != nil {
		return nil, malformed(contentType, raw, err)
	}
	f := x.misjudged(a)
	if f == nil {
		return a, nil
	}
	u, _ := a.Usage()
	f.Used = upstream.TokensOf(u)
	return nil, f
}

// misjudged is the verdict on an answer that only looks like a good one; nil: it
// is one.
func (x *exchange) misjudged(a wire.Answer) *upstream.Failure {
	switch o := a.Judged(); {
	case o.Err != nil:
		return reported(x.on, o.Err)
	case o.Content && !o.Reasoning && x.on.Line.IsErrorSentence(string(a.Text())):
		return upstream.Fail(fault.UpstreamError, fmt.Errorf("error sentence: %.200q", a.Text()))
	case o.Content:
		return nil
	case x.passesEmpty(o.Filtered, o.Limited) && (o.Ended || o.Filtered || o.Limited):
		return nil
	case o.Filtered:
		return upstream.Fail(fault.ContentFilter, errors.New("empty answer, ended by the content filter"))
	case o.Limited && x.asked.Limit > 0:
		f := upstream.Fail(fault.MaxTokensTooSmall, errors.New("empty answer, ended by the request's limit"))
		f.Param = x.asked.LimitParam
		return f
	}
	return upstream.Fail(fault.EmptyCompletion, errors.New("answer without content"))
}

// passesEmpty tells whether an answer without content that has come to its end
// passes as it is. Native messages and responses say how they ended, so theirs
// do (readings: Failures); from a line of another form those that were filtered
// or limited do, which the client's form can say too. Chat completions never do.
func (x *exchange) passesEmpty(filtered, limited bool) bool {
	if x.Form == wire.FormChat {
		return false
	}
	return x.on.Form == x.Form || filtered || limited
}

// deliver settles and sends a whole answer.
func (x *exchange) deliver() error {
	reported, known := x.whole.Usage()
	if x.gone() {
		x.waste(upstream.TokensOf(reported))
		return x.fail(x.client.Err())
	}
	x.run.close()
	judged := x.whole.Judged()
	u := billable(x.usage(reported, known, x.whole.Completion), judged.Filtered, judged.Content || judged.Reasoning)
	pieces, err := x.pair.Render(x.whole.Answer, x.whole.raw, u)
	if err != nil {
		f := upstream.Fail(fault.UpstreamUnavailable, err)
		x.on.Broke(f)
		x.waste(upstream.TokensOf(reported))
		return x.fail(f.Fault())
	}
	if err := x.settleFirst(u); err != nil {
		return err
	}
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(size))
	x.begin(x.whole.contentType)
	for _, piece := range pieces {
		if err := x.write(piece); err != nil {
			break // settled: it stays charged when the client is gone
		}
	}
	return nil
}
