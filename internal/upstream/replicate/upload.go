package replicate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/input"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of references without an address, in bytes. They are sent as data URIs up to maxInline,
// which is Replicate's own bound, and uploaded up to maxFile.
const (
	maxInline = 256 << 10
	maxFile   = 100 << 20
)

// largest returns the size of a task's largest reference without an address.
func largest(task jobcall.Task) int64 {
	refs := task.References
	if task.Mask != nil {
		refs = append(refs[:len(refs):len(refs)], *task.Mask)
	}
	var maxSize int64
	for _, r := range refs {
		if r.URL == "" {
			maxSize = max(maxSize, r.Size)
		}
	}
	return maxSize
}

// referenceValue returns the value of a reference in the input: an address, inline data, or the
// address of an uploaded file.
func (a *Adapter) referenceValue(ctx context.Context, kind string, r jobcall.Reference) (string, error) {
	if r.URL != "" || r.Size <= maxInline {
		return input.Link(ctx, r)
	}
	return a.upload(ctx, kind, r)
}

// upload uploads a reference as a file, which Replicate stores for a day, and returns its address.
// After an error nothing was submitted.
func (a *Adapter) upload(ctx context.Context, kind string, r jobcall.Reference) (string, error) {
	form, contentType, err := form(ctx, r)
	if err != nil {
		return "", upstream.UnreadableFile(err)
	}
	reply, err := a.Line.Query(ctx, exchange.JobCall{
		Method: http.MethodPost, URL: a.Line.URL("files"), Header: a.Header, Body: form, ContentType: contentType, Limit: maxAnswer,
	})
	if err != nil {
		return "", nextLine(err)
	}
	if !reply.OK() {
		return "", reply.SubmitFailure(kind)
	}
	address := gjson.GetBytes(reply.Body, "urls.get").String()
	if !gjson.ValidBytes(reply.Body) || !strings.HasPrefix(address, "http") {
		return "", reply.SubmitFailure(kind)
	}
	return address, nil
}

// nextLine sets the next step of an upload's failure to another line, and returns the failure.
func nextLine(err error) error {
	var t *upstream.JobFailure
	if errors.As(err, &t) {
		t.Next = upstream.NextLine
	}
	return err
}

// form returns a reference as the body of an upload.
func form(ctx context.Context, r jobcall.Reference) (body []byte, contentType string, err error) {
	from, err := r.Open(ctx)
	if err != nil {
		return nil, "", err
	}
	defer from.Close()
	var out bytes.Buffer
	out.Grow(int(r.Size) + 1<<10)
	w := multipart.NewWriter(&out)
	_, extension, _ := strings.Cut(r.Type, "/")
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name="content"; filename="reference.%s"`, extension)},
		"Content-Type":        {r.Type},
	})
	if err != nil {
		return nil, "", err
	}
	n, err := io.Copy(part, io.LimitReader(from, r.Size+1))
	if err == nil && n != r.Size {
		err = fmt.Errorf("read %d bytes of %d", n, r.Size)
	}
	if err != nil {
		return nil, "", err
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), w.FormDataContentType(), nil
}
