package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// submitFailure returns the failure of a rejected submission. Google rejects prompts, references and
// invalid fields of a clip with the same status, so the message decides.
func submitFailure(reply *exchange.Reply, kind string) *upstream.JobFailure {
	f := reply.SubmitFailure(kind)
	if kind == upstream.KindVideo && f.Job == fault.InvalidRequest {
		byMessage := invalidArgument(kind, reply, f.Message)
		byMessage.Status = f.Status
		return byMessage
	}
	return f
}

// invalidArgument returns the failure for rejected input (INVALID_ARGUMENT), according to the
// message. Google has no code for the reason, so invalidArgument passes error codes of other providers
// to TaskFailure.
func invalidArgument(kind string, reply *exchange.Reply, message string) *upstream.JobFailure {
	lower := strings.ToLower(message)
	for _, phrase := range policyWords {
		if strings.Contains(lower, phrase) {
			return upstream.ModerationFailure(kind, message, false)
		}
	}
	for _, phrase := range materialWords {
		if strings.Contains(lower, phrase) {
			return reply.TaskFailure(kind, "invalid_image", message)
		}
	}
	return reply.TaskFailure(kind, "InvalidParameter", message)
}

// policyWords occur in rejections by Google's safety system.
var policyWords = [...]string{"usage guideline", "violat", "responsible ai", "safety", "sensitive word", "sensitive or harmful",
	"prohibited use"}

// materialWords occur in rejections of unreadable references.
var materialWords = [...]string{"process input image", "process input video", "image is not valid", "video is not valid", "decode"}

// taskFailure returns the failure in the error object of an ended task. The error object has a message
// and a code: a gRPC number, an HTTP status or a name.
func taskFailure(kind string, reply *exchange.Reply, e gjson.Result) *upstream.JobFailure {
	message := e.Get("message").String()
	name := e.Get("status").String()
	if name == "" {
		name = e.Get("code").String()
	}
	switch strings.ToUpper(name) {
	case "3", "9", "11", "400", "INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION":
		return invalidArgument(kind, reply, message)
	case "4", "504", "DEADLINE_EXCEEDED":
		return upstream.ExpiredTask(kind, "DEADLINE_EXCEEDED: "+message)
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
	return reply.TaskFailure(kind, name, message)
}

// isFilter reports whether a finish reason means that the safety system withheld the image.
func isFilter(reason string) bool {
	switch reason {
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return true
	}
	return false
}
