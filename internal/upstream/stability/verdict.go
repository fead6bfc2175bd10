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

// read reads a good answer: its picture, or why there is none.
func read(kind string, reply *exchange.Reply) (jobcall.Result, *upstream.JobFailure) {
	if !gjson.ValidBytes(reply.Body) {
		return jobcall.Result{}, reply.Refused(kind)
	}
	said := gjson.ParseBytes(reply.Body)
	if said.Get("finish_reason").String() == "CONTENT_FILTERED" {
		return jobcall.Result{}, upstream.Moderated(kind, "the provider's filter withheld the picture", true)
	}
	data, err := base64.StdEncoding.DecodeString(said.Get("image").String())
	if err != nil || len(data) == 0 {
		if said.Get("finish_reason").Exists() {
			return jobcall.Result{}, reply.Redact(upstream.Nothing(kind, "no picture: "+said.Get("finish_reason").String()))
		}
		return jobcall.Result{}, reply.Refused(kind)
	}
	r := jobcall.Result{Data: data}
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") {
		r.Type = kind
	}
	return r, nil
}

// refused is the verdict on an answer that is not a good one. The provider names
// errors in `name` and says them in `errors`; a review that refuses has the
// status of a permission.
func refused(kind string, reply *exchange.Reply) *upstream.JobFailure {
	said := gjson.ParseBytes(reply.Body)
	name := said.Get("name").String()
	var words []string
	for _, e := range said.Get("errors").Array() {
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
