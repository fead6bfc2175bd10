package conformance

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// Speech returns a call for speech with further fields of its body.
func Speech(fields string) chatcall.Call {
	return chatcall.Call{Form: "speech", Path: "/audio/speech", Model: "m", AnyType: true, IdempotencyKey: "att_1",
		Body: rawjson.Pieces{[]byte(`{"model":"m",` + fields + `}`)}}
}

// Transcription returns a call for a transcription with further fields, and the bytes of the file.
func Transcription(fields, file string) chatcall.Call {
	if fields != "" {
		fields = "," + fields
	}
	return chatcall.Call{Form: "transcription", Path: "/audio/transcriptions", Model: "m", AnyType: true, IdempotencyKey: "att_1",
		Body: rawjson.Pieces{[]byte(`{"model":"m"` + fields + `}`)},
		File: &kind.Upload{Name: "a.wav", ContentType: "audio/wav", Bytes: strings.NewReader(file), Size: int64(len(file))}}
}

// OpenLine opens a line of a provider at a base address, as the gateway does.
func OpenLine(t testing.TB, provider, base string, options map[string]any) chatcall.Adapter {
	t.Helper()
	return open(t, provider, base, options)
}

// Answer makes a call and returns its answer and content type. failure is `broken` if the answer broke off
// after it began. If there is no answer, failure has the code, and the health or the rejection's param.
func Answer(t testing.TB, a chatcall.Adapter, c chatcall.Call) (body, contentType, failure string) {
	t.Helper()
	answer, err := a.Chat(t.Context(), c)
	if err != nil {
		var f *upstream.Failure
		if !errors.As(err, &f) {
			t.Fatalf("got the error %v, want a failure", err)
		}
		if f.Rejection != nil {
			return "", "", fmt.Sprintf("%s at %q, other lines: %t", f.Code, f.Rejection.Param, f.LineSpecific)
		}
		return "", "", fmt.Sprintf("%s %s", f.Code, f.Health)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		failure = "broken"
	}
	return string(raw), answer.ContentType, failure
}
