package show

import (
	"fmt"
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/console/part"
	"tollgate/internal/wire"
)

// KeySnippets are the ways to use a key: programs and coding agents, ready to
// copy, at a base address, against models of the catalog that speak their form. The secret stands
// in them where it is shown; empty: a place for it does.
func KeySnippets(base string, snapshot *catalog.Snapshot, secret string) []part.Snippet {
	if secret == "" {
		secret = "sk-…"
	}
	var codes []part.Snippet
	if m := firstModel(snapshot, wire.FormChat); m != "" {
		codes = append(codes, chatSnippets(base, secret, m)...)
	}
	if m := firstModel(snapshot, wire.FormMessages); m != "" {
		codes = append(codes, messagesAgent(base, secret, m))
	}
	if m := firstModel(snapshot, wire.FormResponses); m != "" {
		codes = append(codes, responsesAgent(base, secret, m))
	}
	if m := firstModel(snapshot, wire.FormChat); m != "" {
		codes = append(codes, chatAgent(base, secret, m))
	}
	return codes
}

// ModelSnippets are the ways to use a model at a base address.
func ModelSnippets(base string, m *catalog.Model) []part.Snippet {
	const secret = "sk-…"
	if m.Kind != catalog.KindChat {
		return jobSnippets(base, secret, m)
	}
	var codes []part.Snippet
	if m.Speaks(wire.FormChat) {
		codes = append(codes, chatSnippets(base, secret, m.ID)...)
		codes = append(codes, chatAgent(base, secret, m.ID))
	}
	if m.Speaks(wire.FormMessages) {
		codes = append(codes, messagesAgent(base, secret, m.ID))
	}
	if m.Speaks(wire.FormResponses) {
		codes = append(codes, responsesAgent(base, secret, m.ID))
	}
	return codes
}

// jobSnippets submit a job and ask for its result.
func jobSnippets(base, secret string, m *catalog.Model) []part.Snippet {
	kind := string(m.Kind)
	return []part.Snippet{{Name: "curl", Text: fmt.Sprintf(`curl %s/v1/%ss/generations \
  -H "Authorization: Bearer %s" \
  -H "Content-Type: application/json" \
  -d '{"model": %q, "prompt": "A lighthouse in the fog"}'

# the answer has the id of the job; its result is there a while later:
curl %[1]s/v1/%[2]ss/jobs/JOB -H "Authorization: Bearer %[3]s"`, base, kind, secret, m.ID)},
		{Name: "Python", Text: fmt.Sprintf(`import time, requests

base, headers = "%s/v1/%ss", {"Authorization": "Bearer %s"}
job = requests.post(f"{base}/generations", headers=headers,
                    json={"model": %q, "prompt": "A lighthouse in the fog"}).json()
while job["status"] in ("queued", "processing"):
    time.sleep(3)
    job = requests.get(f"{base}/jobs/{job['id']}", headers=headers).json()
print(job["data"][0]["url"])`, base, kind, secret, m.ID)}}
}

func messagesAgent(base, secret, model string) part.Snippet {
	return part.Snippet{Name: "Claude Code", Text: fmt.Sprintf(`export ANTHROPIC_BASE_URL=%s/native
export ANTHROPIC_API_KEY=%s
claude --model %s`, base, secret, model)}
}

func responsesAgent(base, secret, model string) part.Snippet {
	return part.Snippet{Name: "Codex", Text: fmt.Sprintf(`# ~/.codex/config.toml
model = %q
model_provider = "gateway"
web_search = "disabled"

[model_providers.gateway]
name = "gateway"
base_url = "%s/v1"
env_key = "GATEWAY_API_KEY"
wire_api = "responses"

# then, in a shell:
export GATEWAY_API_KEY=%s
codex`, model, base, secret)}
}

func chatAgent(base, secret, model string) part.Snippet {
	return part.Snippet{Name: "Cline", Text: fmt.Sprintf(`API Provider:  OpenAI Compatible
Base URL:      %s/v1
API Key:       %s
Model ID:      %s`, base, secret, model)}
}

// chatSnippets ask a chat model in the languages that most programs are in.
func chatSnippets(base, secret, model string) []part.Snippet {
	return []part.Snippet{
		{Name: "curl", Text: fmt.Sprintf(`curl %s/v1/chat/completions \
  -H "Authorization: Bearer %s" \
  -H "Content-Type: application/json" \
  -d '{"model": %q, "messages": [{"role": "user", "content": "Hello!"}]}'`, base, secret, model)},
		{Name: "Python", Text: fmt.Sprintf(`from openai import OpenAI

client = OpenAI(base_url="%s/v1", api_key="%s")
answer = client.chat.completions.create(
    model=%q,
    messages=[{"role": "user", "content": "Hello!"}],
)
print(answer.choices[0].message.content)`, base, secret, model)},
		{Name: "Node", Text: fmt.Sprintf(`import OpenAI from "openai";

const client = new OpenAI({ baseURL: "%s/v1", apiKey: "%s" });
const answer = await client.chat.completions.create({
  model: %q,
  messages: [{ role: "user", content: "Hello!" }],
});
console.log(answer.choices[0].message.content);`, base, secret, model)},
		{Name: "Go", Text: fmt.Sprintf(`client := openai.NewClient(
	option.WithBaseURL("%s/v1/"),
	option.WithAPIKey("%s"),
)
answer, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
	Model:    %q,
	Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello!")},
})
if err != nil {
	log.Fatal(err)
}
fmt.Println(answer.Choices[0].Message.Content)`, base, secret, model)},
	}
}

// sandboxProvider is that of lines which only play.
const sandboxProvider = "sandbox"

// firstModel names the first open model that answers in a form: one with a line that does
// more than play, if there is one. Empty: none does.
func firstModel(s *catalog.Snapshot, form wire.Form) (first string) {
	for _, m := range s.Models() {
		if m.State != catalog.StateOpen || !m.Speaks(form) {
			continue
		}
		if slices.ContainsFunc(s.Lines(m.ID), func(l *catalog.Line) bool { return l.Provider != sandboxProvider }) {
			return m.ID
		}
		if first == "" {
			first = m.ID
		}
	}
	return first
}
