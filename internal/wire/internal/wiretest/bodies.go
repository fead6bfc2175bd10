package wiretest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// ChatBody returns a request body with further members.
func ChatBody(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// ChatParts returns a request body with the given content parts in its second message.
func ChatParts(content string) string {
	return `{"model":"m","messages":[{"role":"system","content":"x"},{"role":"user","content":[` + content + `]}]}`
}

// ChatMessages returns a request body with the given messages.
func ChatMessages(list string) string { return `{"model":"m","messages":` + list + `}` }

// LimitsIn returns the limits in a body by field.
func LimitsIn(body []byte) map[string]string {
	limits := form.LimitFields()
	found := map[string]string{}
	for name, value := range rawjson.Members(body[rawjson.SkipSpace(body, 0):]) {
		if slices.Contains(limits[:], string(name)) {
			found[string(name)] = string(value)
		}
	}
	return found
}

// OtherMembers returns the members of a body except those set by the gateway.
func OtherMembers(t *testing.T, body []byte) map[string]string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	limits := form.LimitFields()
	out := make(map[string]string)
	for name, value := range all {
		switch name {
		case "model", "store", "stream_options":
		default:
			if slices.Contains(limits[:], name) {
				continue
			}
			out[name] = string(value)
		}
	}
	return out
}

// Frames returns a stream of data events.
func Frames(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// Delta returns a frame of one choice.
func Delta(delta, finish string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"v","choices":[` +
		`{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

// CheckUsage checks the counts read from data.
func CheckUsage(t *testing.T, data []byte, u wire.Usage) {
	t.Helper()
	if u.Prompt < 0 || u.Cached < 0 || u.CacheWrite < 0 || u.CacheWrite1h < 0 || u.Completion < 0 || u.Reasoning < 0 ||
		u.Cached+u.CacheWrite+u.CacheWrite1h > u.Prompt || u.Reasoning > u.Completion ||
		u.Prompt > rawjson.MaxCount || u.Completion > rawjson.MaxCount {
		t.Fatalf("%s: usage %+v", data, u)
	}
}
