package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// refused returns the failure of a rejected submission of a clip. Google rejects prompts,
// references and wrong fields with the same status; only the message tells them apart.
func refused(reply *exchange.Reply, kind string) *upstream.JobFailure {
	t := reply.Refused(kind)
	if kind == upstream.KindVideo && t.Job == fault.InvalidRequest {
		again := argument(kind, reply, t.Message)
		again.Status = t.Status
		return again
	}
	return t
}

// argument returns the failure for rejected input (INVALID_ARGUMENT), by the message. The codes
// passed to Ended are those of providers with a code for the reason.
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

// materialWords occur in rejections of unreadable references.
var materialWords = [...]string{"process input image", "process input video", "image is not valid", "video is not valid", "decode"}

// ended returns the failure in an error object: a message and a code, either a gRPC or HTTP number
// or a name.
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

// isFilter reports whether the reason for a missing image is the safety system.
func isFilter(reason string) bool {
	switch reason {
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return true
	}
	return false
}
