package stability

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// read returns the picture in a successful response, or a failure if there is no picture.
func read(kind string, reply *exchange.Reply) (jobcall.Result, *upstream.JobFailure) {
	if !gjson.ValidBytes(reply.Body) {
		return jobcall.Result{}, reply.SubmitFailure(kind)
	}
	doc := gjson.ParseBytes(reply.Body)
	if doc.Get("finish_reason").String() == "CONTENT_FILTERED" {
		return jobcall.Result{}, upstream.ModerationFailure(kind, "the provider's filter withheld the picture", true)
	}
	data, err := base64.StdEncoding.DecodeString(doc.Get("image").String())
	if err != nil || len(data) == 0 {
		if doc.Get("finish_reason").Exists() {
			return jobcall.Result{}, reply.Redact(upstream.EmptyResult(kind, "no picture: "+doc.Get("finish_reason").String()))
		}
		return jobcall.Result{}, reply.SubmitFailure(kind)
	}
	r := jobcall.Result{Data: data}
	if mediaType := http.DetectContentType(data); strings.HasPrefix(mediaType, "image/") {
		r.Type = mediaType
	}
	return r, nil
}

// submitFailure returns the failure for an unsuccessful response. The error code is in `name` and the
// messages are in `errors`. A prompt rejected by the content review has the status of a missing
// permission.
func submitFailure(kind string, reply *exchange.Reply) *upstream.JobFailure {
	doc := gjson.ParseBytes(reply.Body)
	name := doc.Get("name").String()
	var messages []string
	for _, e := range doc.Get("errors").Array() {
		messages = append(messages, e.String())
	}
	switch {
	case name == "" || len(messages) == 0:
		return reply.SubmitFailure(kind)
	case name == "content_moderation":
		name = "moderation_blocked"
	}
	return reply.SubmitFailureAs(kind, name, strings.Join(messages, " "))
}
