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

// read returns the picture in a good response, or the failure without a picture.
func read(kind string, reply *exchange.Reply) (jobcall.Result, *upstream.JobFailure) {
	if !gjson.ValidBytes(reply.Body) {
		return jobcall.Result{}, reply.Refused(kind)
	}
	doc := gjson.ParseBytes(reply.Body)
	if doc.Get("finish_reason").String() == "CONTENT_FILTERED" {
		return jobcall.Result{}, upstream.Moderated(kind, "the provider's filter withheld the picture", true)
	}
	data, err := base64.StdEncoding.DecodeString(doc.Get("image").String())
	if err != nil || len(data) == 0 {
		if doc.Get("finish_reason").Exists() {
			return jobcall.Result{}, reply.Redact(upstream.Nothing(kind, "no picture: "+doc.Get("finish_reason").String()))
		}
		return jobcall.Result{}, reply.Refused(kind)
	}
	r := jobcall.Result{Data: data}
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") {
		r.Type = kind
	}
	return r, nil
}

// refused returns the failure for a response without success. The provider has the code in `name`
// and the messages in `errors`. A rejection by the review has the status of a missing permission.
func refused(kind string, reply *exchange.Reply) *upstream.JobFailure {
	doc := gjson.ParseBytes(reply.Body)
	name := doc.Get("name").String()
	var words []string
	for _, e := range doc.Get("errors").Array() {
		words = append(words, e.String())
	}
	switch {
	case name == "" || len(words) == 0:
		return reply.Refused(kind)
	case name == "content_moderation":
		name = "moderation_blocked"
	}
	return reply.RefusedAs(kind, name, strings.Join(words, " "))
}
