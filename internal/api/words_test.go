package api_test

import (
	"strings"
	"testing"

	"tollgate/internal/account"
)

// TestRefusalsSayWhatToDo checks that the messages of refusals tell the client what to do.
func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	const chat = "/v1/chat/completions"
	for _, c := range []struct {
		path, body, code, says string
		status                 int
	}{
		{chat, `{"model":"easel-1","messages":[]}`, "model_not_found", "/v1/images/generations", 400},
		{chat, `{"model":"reel-1","messages":[]}`, "model_not_found", "/v1/videos/generations", 400},
		{generations, `{"model":"swift-1","prompt":"x"}`, "model_not_found", chat, 400},
		{chat, "", "invalid_json", "body is empty", 400},
		{chat, " \n", "invalid_json", "body is empty", 400},
		{chat, `{"model":`, "invalid_json", "ends too early", 400},
	} {
		got := d.send("POST", c.path, c.body, as(secret)...)
		got.refused(t, c.status, c.code)
		if !strings.Contains(string(got.body), c.says) {
			t.Errorf("%s %q: %s; want %q", c.path, c.body, got.body, c.says)
		}
	}
}

// TestKeyWithoutItsScheme checks that a key in the wrong place gets an explanation, and that no
// answer repeats the key.
func TestKeyWithoutItsScheme(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	for _, c := range []struct{ path, authorization, says string }{
		{"/v1/models", "", "No API key was sent"},
		{"/v1/models", "Bearer ", "No API key was sent"},
		{"/v1/models", secret, "has no scheme"},
		{"/v1/models", "Basic " + secret, "another scheme than Bearer"},
		{"/v1/models", secret + " " + secret, "another scheme than Bearer"},
		{"/native/v1/models", secret, "has no scheme"},
		{"/native/v1/models", "", "x-api-key"},
	} {
		headers := []string{}
		if c.authorization != "" {
			headers = append(headers, "Authorization", c.authorization)
		}
		got := d.send("GET", c.path, "", headers...)
		if strings.HasPrefix(c.path, "/v1") {
			got.refused(t, 401, "missing_api_key")
		}
		if body := string(got.body); got.status != 401 || !strings.Contains(body, c.says) || strings.Contains(body, secret) {
			t.Errorf("%s with %q: %d %s; want %q", c.path, c.authorization, got.status, body, c.says)
		}
	}
	if got := d.send("GET", "/native/v1/models", "", "Authorization", secret, "x-api-key", secret); got.status != 200 {
		t.Errorf("x-api-key beside it: %d %s", got.status, got.body)
	}
}
