package show

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/console/ui"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
)

// call is the API call of a snippet: a request to a model at a base address, with a key.
type call struct{ base, secret, model, prompt string }

const (
	// placeholder stands for the secret of a key.
	placeholder = "sk-…"
	chatPrompt  = "Hello!"
	imagePrompt = "A lighthouse in the fog"
)

// KeySnippets returns examples for a key, ready to copy: programs, and configurations of coding agents. base is
// the base address. Each example uses a model of offer with the API form of the example. If allowed is not
// empty, only its models are used. If secret is empty, the examples have a placeholder.
func KeySnippets(base string, offer Offer, allowed []string, secret string) []ui.Snippet {
	if secret == "" {
		secret = placeholder
	}
	firstModel := func(fits func(*catalog.Model) bool) *catalog.Model {
		return offer.First(func(m *catalog.Model) bool {
			return Allows(allowed, m.ID) && !offer.Catalog.HidesSandbox(m.ID, false, allowed) && fits(m)
		})
	}
	var codes []ui.Snippet
	add := func(form wire.Form, snippets func(call) []ui.Snippet) {
		if m := firstModel(func(m *catalog.Model) bool { return m.Supports(form) }); m != nil {
			codes = append(codes, snippets(call{base, secret, m.ID, chatPrompt})...)
		}
	}
	add(wire.FormChat, call.chat)
	add(wire.FormMessages, func(c call) []ui.Snippet { return []ui.Snippet{c.messagesAgent()} })
	add(wire.FormResponses, func(c call) []ui.Snippet { return []ui.Snippet{c.responsesAgent()} })
	add(wire.FormChat, func(c call) []ui.Snippet { return []ui.Snippet{c.chatAgent()} })
	if m := firstModel(func(*catalog.Model) bool { return true }); m != nil && len(codes) == 0 { // only image or video models
		return modelSnippets(base, secret, m)
	}
	return codes
}

// ModelSnippets returns examples for a model at a base address.
func ModelSnippets(base string, m *catalog.Model) []ui.Snippet {
	return modelSnippets(base, placeholder, m)
}

func modelSnippets(base, secret string, m *catalog.Model) []ui.Snippet {
	c := call{base, secret, m.ID, chatPrompt}
	var codes []ui.Snippet
	if d := m.Kind.Definition(); d != nil {
		return c.examples(d)
	}
	if m.Kind.IsJob() {
		c.prompt = imagePrompt
		return c.job(string(m.Kind))
	}
	switch {
	case m.Supports(wire.FormChat):
		codes = c.chat()
	case m.Supports(wire.FormResponses):
		codes = c.responses()
	case m.Supports(wire.FormMessages):
		codes = c.messages()
	}
	if m.Supports(wire.FormMessages) {
		codes = append(codes, c.messagesAgent())
	}
	if m.Supports(wire.FormResponses) {
		codes = append(codes, c.responsesAgent())
	}
	if m.Supports(wire.FormChat) {
		codes = append(codes, c.chatAgent())
	}
	return codes
}

// KindSnippets returns examples for a model of a kind. It returns nil unless the kind has a Definition.
func KindSnippets(base string, k catalog.Kind, model string) []ui.Snippet {
	if d := k.Definition(); d != nil {
		return call{base, placeholder, model, ""}.examples(d)
	}
	return nil
}

// examples returns the examples of a kind.
func (c call) examples(d *kind.Definition) (codes []ui.Snippet) {
	for _, example := range d.Examples {
		codes = append(codes, c.snippet(example.Language, example.Text))
	}
	return codes
}

// CallSnippets returns a request with a prompt to an endpoint, as code. It returns nil if the endpoint does not
// run models.
func CallSnippets(base, endpoint, model, prompt string) []ui.Snippet {
	c := call{base, placeholder, model, prompt}
	switch endpoint {
	case "/v1/chat/completions":
		return c.chat()
	case "/v1/responses":
		return c.responses()
	case "/native/v1/messages":
		return c.messages()
	case "/v1/images/generations", "/v1/images/edits":
		return c.job(string(catalog.KindImage))
	case "/v1/videos/generations":
		return c.job(string(catalog.KindVideo))
	}
	for _, k := range catalog.Kinds() {
		d := k.Definition()
		if d != nil && slices.ContainsFunc(d.Endpoints, func(p kind.CallPath) bool { return p.Path == endpoint }) {
			return c.examples(d)
		}
	}
	return nil
}

// snippet replaces BASE, SECRET, MODEL and PROMPT in a text with the values of the call. MODEL and PROMPT get
// quotes.
func (c call) snippet(name, text string) ui.Snippet {
	return ui.Snippet{Name: ui.Data(name),
		Text: ui.Data(strings.NewReplacer("BASE", c.base, "SECRET", c.secret, "MODEL", fmt.Sprintf("%q", c.model),
			"PROMPT", fmt.Sprintf("%q", c.prompt)).Replace(text))}
}

// chat returns examples in the chat-completions form.
func (c call) chat() []ui.Snippet {
	return []ui.Snippet{
		c.snippet("curl", `curl BASE/v1/chat/completions \
  -H "Authorization: Bearer SECRET" \
  -H "Content-Type: application/json" \
  -d '{"model": MODEL, "messages": [{"role": "user", "content": PROMPT}]}'`),
		c.snippet("Python", `from openai import OpenAI

client = OpenAI(base_url="BASE/v1", api_key="SECRET")
answer = client.chat.completions.create(
    model=MODEL,
    messages=[{"role": "user", "content": PROMPT}],
)
print(answer.choices[0].message.content)`),
		c.snippet("Node", `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "BASE/v1", apiKey: "SECRET" });
const answer = await client.chat.completions.create({
  model: MODEL,
  messages: [{ role: "user", content: PROMPT }],
});
console.log(answer.choices[0].message.content);`),
		c.snippet("Go", `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(option.WithBaseURL("BASE/v1/"), option.WithAPIKey("SECRET"))
	answer, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model:    MODEL,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(PROMPT)},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Choices[0].Message.Content)
}`),
	}
}

// responses returns examples in the responses form.
func (c call) responses() []ui.Snippet {
	return []ui.Snippet{
		c.snippet("curl", `curl BASE/v1/responses \
  -H "Authorization: Bearer SECRET" \
  -H "Content-Type: application/json" \
  -d '{"model": MODEL, "input": PROMPT}'`),
		c.snippet("Python", `from openai import OpenAI

client = OpenAI(base_url="BASE/v1", api_key="SECRET")
answer = client.responses.create(model=MODEL, input=PROMPT)
print(answer.output_text)`),
		c.snippet("Node", `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "BASE/v1", apiKey: "SECRET" });
const answer = await client.responses.create({ model: MODEL, input: PROMPT });
console.log(answer.output_text);`),
		c.snippet("Go", `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func main() {
	client := openai.NewClient(option.WithBaseURL("BASE/v1/"), option.WithAPIKey("SECRET"))
	answer, err := client.Responses.New(context.Background(), responses.ResponseNewParams{
		Model: MODEL,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(PROMPT)},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.OutputText())
}`),
	}
}

// messages returns examples in the native messages form.
func (c call) messages() []ui.Snippet {
	return []ui.Snippet{
		c.snippet("curl", `curl BASE/native/v1/messages \
  -H "x-api-key: SECRET" \
  -H "Content-Type: application/json" \
  -d '{"model": MODEL, "max_tokens": 1024, "messages": [{"role": "user", "content": PROMPT}]}'`),
		c.snippet("Python", `from anthropic import Anthropic

client = Anthropic(base_url="BASE/native", api_key="SECRET")
answer = client.messages.create(
    model=MODEL,
    max_tokens=1024,
    messages=[{"role": "user", "content": PROMPT}],
)
print(answer.content[0].text)`),
		c.snippet("Node", `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: "BASE/native", apiKey: "SECRET" });
const answer = await client.messages.create({
  model: MODEL,
  max_tokens: 1024,
  messages: [{ role: "user", content: PROMPT }],
});
console.log(answer.content[0].text);`),
		c.snippet("Go", `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func main() {
	client := anthropic.NewClient(option.WithBaseURL("BASE/native"), option.WithAPIKey("SECRET"))
	answer, err := client.Messages.New(context.Background(), anthropic.MessageNewParams{
		Model:     MODEL,
		MaxTokens: 1024,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(PROMPT))},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Content[0].Text)
}`),
	}
}

// job returns examples that submit a job of a kind and wait for the result.
func (c call) job(kind string) []ui.Snippet {
	c.base += "/v1/" + kind + "s"
	return []ui.Snippet{
		c.snippet("curl", `curl BASE/generations \
  -H "Authorization: Bearer SECRET" \
  -H "Content-Type: application/json" \
  -d '{"model": MODEL, "prompt": PROMPT}'

# the answer has the id of the job; its result is there a while later:
curl BASE/jobs/JOB -H "Authorization: Bearer SECRET"`),
		c.snippet("Python", `import time, requests

base, headers = "BASE", {"Authorization": "Bearer SECRET"}
answer = requests.post(f"{base}/generations", headers=headers,
                       json={"model": MODEL, "prompt": PROMPT})
answer.raise_for_status()
job = answer.json()
while job["status"] in ("queued", "processing"):
    time.sleep(3)
    job = requests.get(f"{base}/jobs/{job['id']}", headers=headers).json()
print(job["data"][0]["url"] if job["status"] == "succeeded" else job["error"]["message"])`),
		c.snippet("Node", `const base = "BASE";
const headers = { Authorization: "Bearer SECRET", "Content-Type": "application/json" };
const read = async (answer) => {
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};
let job = await read(await fetch(base + "/generations", {
  method: "POST", headers, body: JSON.stringify({ model: MODEL, prompt: PROMPT }),
}));
while (job.status === "queued" || job.status === "processing") {
  await new Promise((done) => setTimeout(done, 3000));
  job = await read(await fetch(base + "/jobs/" + job.id, { headers }));
}
console.log(job.status === "succeeded" ? job.data[0].url : job.error.message);`),
		c.snippet("Go", `package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"time"
)

type job struct {
	ID, Status string
	Data       []struct{ URL string }
	Error      struct{ Message string }
}

func ask(method, path, body string) (j job) {
	r, err := http.NewRequest(method, "BASE"+path, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer SECRET")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 || json.Unmarshal(raw, &j) != nil {
		log.Fatal(answer.Status, " ", string(raw), err)
	}
	return j
}

func main() {
	body, _ := json.Marshal(map[string]string{"model": MODEL, "prompt": PROMPT})
	j := ask("POST", "/generations", string(body))
	for j.Status == "queued" || j.Status == "processing" {
		time.Sleep(3 * time.Second)
		j = ask("GET", "/jobs/"+j.ID, "")
	}
	if j.Status == "failed" {
		log.Fatal(j.Error.Message)
	}
	fmt.Println(j.Data[0].URL)
}`),
	}
}

func (c call) messagesAgent() ui.Snippet {
	return ui.Snippet{Name: "Claude Code",
		Text: ui.Sayf("export ANTHROPIC_BASE_URL=%s/native\nexport ANTHROPIC_API_KEY=%s\nclaude --model %s", c.base, c.secret, c.model)}
}

func (c call) responsesAgent() ui.Snippet {
	return c.snippet("Codex", `# ~/.codex/config.toml
model = MODEL
model_provider = "gateway"
web_search = "disabled"

[model_providers.gateway]
name = "gateway"
base_url = "BASE/v1"
env_key = "GATEWAY_API_KEY"
wire_api = "responses"
supports_websockets = false

# then, in a shell:
export GATEWAY_API_KEY=SECRET
codex`)
}

func (c call) chatAgent() ui.Snippet {
	return ui.Snippet{Name: "Cline", Text: ui.Sayf("API Provider:  OpenAI Compatible\nBase URL:      %s/v1\nAPI Key:       "+
		"%s\nModel ID:      %s", c.base, c.secret, c.model)}
}
