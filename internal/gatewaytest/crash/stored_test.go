package crash

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// TestStoredResponsesAfterKills kills the real process after each answer of a conversation. The next
// process, and on PostgreSQL another node, continue the conversation by the id of the last response.
// A response whose stream the kill interrupted is unknown.
func TestStoredResponsesAfterKills(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		provider := fakeprovider.New(t)
		n := open(t, database, provider, "1s")
		nodes := []*scene.Node{n}
		if !strings.HasPrefix(database, "sqlite:") {
			nodes = append(nodes, n.Second())
		}
		_, key := n.Account(10, nil)
		var previous string
		var want []string
		for turn := range 4 {
			node := nodes[turn%len(nodes)]
			question, answer := fmt.Sprintf("question %d", turn), fmt.Sprintf("answer %d", turn)
			if turn%2 == 0 {
				provider.Expect(fakeprovider.Answer(answer, 10, 5))
			} else {
				provider.Expect(fakeprovider.Stream(10, 5, answer))
			}
			previous = respond(t, node, key, previous, question, turn%2 == 1)
			node.Kill()
			node.Restart()
			want = append(want, question)
			requests := provider.Requests()
			if got := texts(t, requests[len(requests)-1].Body); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("turn %d: the provider got %q; want %q", turn, got, want)
			}
			want = append(want, answer)
		}

		reply := fakeprovider.Stream(10, 5, strings.Split(strings.Repeat("word ", 100), " ")...)
		reply.Gap = 50 * time.Millisecond
		provider.Expect(reply)
		answer := post(t, n, key, previous, "question 4", true)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		id := ""
		for id == "" && lines.Scan() {
			id = responseID([]byte(strings.TrimPrefix(lines.Text(), "data: ")))
		}
		n.Kill()
		n.Restart()
		for id, status := range map[string]int{id: http.StatusNotFound, previous: http.StatusOK} {
			got, err := scene.Do(t.Context(), n.Client, "GET", n.URL+"/v1/responses/"+id, "", "Authorization", "Bearer "+key)
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			if got.StatusCode != status {
				t.Errorf("GET of response %q: %d; want %d", id, got.StatusCode, status)
			}
		}
	})
}

// post sends one turn of a conversation.
func post(t *testing.T, n *scene.Node, key, previous, input string, stream bool) *http.Response {
	t.Helper()
	body := map[string]any{"model": "m", "max_output_tokens": 500, "input": input, "stream": stream}
	if previous != "" {
		body["previous_response_id"] = previous
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := scene.Do(t.Context(), n.Client, "POST", n.URL+"/v1/responses", string(raw), "Authorization", "Bearer "+key)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// respond sends one turn and returns the id of the whole response.
func respond(t *testing.T, n *scene.Node, key, previous, input string, stream bool) string {
	t.Helper()
	answer := post(t, n, key, previous, input, stream)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", answer.StatusCode, raw, err)
	}
	if _, end, ok := strings.Cut(string(raw), "event: response.completed\ndata: "); ok {
		raw = []byte(end)
	}
	id := responseID(raw)
	if id == "" {
		t.Fatalf("no id in %s", raw)
	}
	return id
}

// responseID returns the id of a response, or of the response in an event, or "".
func responseID(raw []byte) string {
	var body struct {
		ID       string
		Response struct{ ID string }
	}
	_ = json.NewDecoder(strings.NewReader(string(raw))).Decode(&body)
	return body.ID + body.Response.ID
}

// texts returns the texts of the messages in a request of the chat form.
func texts(t *testing.T, body []byte) (all []string) {
	t.Helper()
	var request struct {
		Messages []struct{ Content string }
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	for _, m := range request.Messages {
		all = append(all, m.Content)
	}
	return all
}
