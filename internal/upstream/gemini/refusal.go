package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// refused is the verdict on an answer to the submission of a clip that is not a
// good one. Google rejects prompts and references with the same status as
// wrong fields, and says which in words alone.
func refused(reply *exchange.Reply, kind string) *upstream.JobFailure {
	t := reply.Refused(kind)
	if kind == upstream.KindVideo && t.Job == fault.InvalidRequest {
		again := argument(kind, reply, t.Message)
		again.Status = t.Status
		return again
	}
	return t
}

// argument is the verdict on a work whose input was refused (INVALID_ARGUMENT),
// by the words of the refusal. The codes are those of other providers, which
// have names for it.
func argument(kind string, reply *exchange.Reply, message string) *upstream.JobFailure {
	words := strings.ToLower(message)
	for _, w := range policyWords {
		if strings.Contains(words, w) {
			return upstream.Moderated(kind, message, false)
		}
	}
	for _, w := range materialWords {
		if strings.Contains(words, w) {
			return reply.Ended(kind, "invalid_image", message)
		}
	}
	return reply.Ended(kind, "InvalidParameter", message)
}

// policyWords are in refusals of Google's safety system.
var policyWords = [...]string{"usage guideline", "violat", "responsible ai", "safety", "sensitive word", "sensitive or harmful",
	"prohibited use"}

// materialWords are in refusals of references that could not be read.
var materialWords = [...]string{"process input image", "process input video", "image is not valid", "video is not valid", "decode"}

// ended is the verdict on a work whose failure stands in an error object: a
// code, as a number of gRPC's or of HTTP's, or as a name, and a message.
func ended(kind string, reply *exchange.Reply, e gjson.Result) *upstream.JobFailure {
	message := e.Get("message").String()
	name := e.Get("status").String()
	if name == "" {
		name = e.Get("code").String()
	}
	switch strings.ToUpper(name) {
	case "3", "9", "11", "400", "INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION":
		return argument(kind, reply, message)
	case "4", "504", "DEADLINE_EXCEEDED":
		return upstream.Expired(kind, "DEADLINE_EXCEEDED: "+message)
	case "5", "404":
		name = "NOT_FOUND"
	case "7", "16", "401", "403", "PERMISSION_DENIED", "UNAUTHENTICATED":
		name = "PERMISSION_DENIED"
	case "8", "429":
		name = "RESOURCE_EXHAUSTED"
	case "13", "500":
		name = "INTERNAL"
	case "14", "503":
		name = "UNAVAILABLE"
	}
	return reply.Ended(kind, name, message)
}

// isFilter tells whether a reason for which an image did not come is one of the
// safety system.
func isFilter(reason string) bool {
	switch reason {
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return true
	}
	return false
}
