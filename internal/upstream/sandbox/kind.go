package sandbox

import (
	"bytes"
	"context"
	"io"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// answerKind answers a call of a kind of package wire/kind. The whole body is the text for the option
// `fail_on`.
func (a *Adapter) answerKind(ctx context.Context, d *kind.Definition, c chatcall.Call) (*chatcall.Response, error) {
	body := rawjson.Override(c.Body, a.set, a.omit).Bytes()
	c.Body = rawjson.Pieces{body}
	o, f := a.begin(ctx, c, string(body))
	if f != nil {
		return nil, f
	}
	kindAnswer, err := d.Sandbox(body, c.File)
	if err != nil {
		rejected := fault.Of(err)
		return nil, classify(problem{status: rejected.Status(), kind: "invalid_request_error", code: string(rejected.Code),
			message: rejected.Message()}, c, nil)
	}
	if err := pause(ctx, nil, o.delay); err != nil {
		return nil, upstream.ConnectionFailure(ctx, err)
	}
	return &chatcall.Response{
		Body: io.NopCloser(bytes.NewReader(kindAnswer.Body)), ContentType: kindAnswer.ContentType, Length: int64(len(kindAnswer.Body)),
	}, nil
}
