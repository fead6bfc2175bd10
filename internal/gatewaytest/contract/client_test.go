package contract

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"tollgate/internal/contract/contracttest"
	"tollgate/internal/gatewaytest/scene"
)

// contractClient sends requests to a gateway and checks each answer against the contracts.
type contractClient struct {
	t       *testing.T
	process *scene.Process
	checker *contracttest.Checker
	client  http.Client
	key     string
}

func newContractClient(t *testing.T, p *scene.Process) *contractClient {
	checker, err := contracttest.New()
	if err != nil {
		t.Fatal(err)
	}
	v := &contractClient{t: t, process: p, checker: checker, client: http.Client{Transport: &http.Transport{}}}
	t.Cleanup(v.client.CloseIdleConnections)
	return v
}

// ask sends a request, checks the status, and returns the answer if it is an object.
func (v *contractClient) ask(want int, method, path, body string, headers ...string) map[string]any {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.process.URL+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	if strings.HasPrefix(path, "/admin/") || path == "/metrics" {
		r.Header.Set("Authorization", "Bearer "+scene.AdminToken)
	} else {
		r.Header.Set("Authorization", "Bearer "+v.key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if answer.StatusCode != want {
		v.t.Errorf("%s %s: %d %s, want %d", method, path, answer.StatusCode, raw, want)
	}
	if err := v.checker.Check(contracttest.Answer{Method: method, Path: r.URL.Path, Sent: []byte(body), Status: answer.StatusCode,
		Header: answer.Header, Body: raw}); err != nil {
		v.t.Errorf("%s %s breaks the contract: %v", method, path, err)
	}
	var object map[string]any
	_ = json.Unmarshal(raw, &object) // a stream, a table or a file is not an object
	return object
}

// text returns a string member of an answer.
func text(answer map[string]any, name string) string {
	value, _ := answer[name].(string)
	return value
}

// first returns the first entry of a list.
func first(answer map[string]any) map[string]any {
	list, _ := answer["data"].([]any)
	if len(list) == 0 {
		return nil
	}
	entry, _ := list[0].(map[string]any)
	return entry
}
