package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// chatModel is a valid entry. Tests change it in one place.
const chatModel = `{id: a, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}`

// edit returns a catalog with chatModel, after a replacement in its text.
func edit(old, replacement string) string {
	if !strings.Contains(chatModel, old) {
		panic("chatModel has no text " + old)
	}
	return "models: [" + strings.Replace(chatModel, old, replacement, 1) + "]"
}

// addKeys returns a catalog with chatModel and further keys.
func addKeys(keys string) string { return edit("kind: chat", "kind: chat, "+keys) }

// mediaYAML returns a catalog with one image or video model.
func mediaYAML(keys string) string { return "models: [{id: a, " + keys + "}]" }

// lineYAML returns a catalog with chatModel and a line.
func lineYAML(keys string) string {
	return "models: [" + chatModel + "]\nlines:\n- {id: l, models: {a: b}, " + keys + "}"
}

// TestFaults checks that each invalid document is rejected with all its faults at their paths.
func TestFaults(t *testing.T) {
	t.Parallel()
	const sandbox = "provider: sandbox"
	for name, tt := range map[string]struct {
		text string
		want string // all faults, one a line; each line is a prefix
	}{
		"empty text":          {"", "document: is empty"},
		"only a comment":      {"# nothing", "document: is empty"},
		"list":                {"- 1", "document: must be a mapping"},
		"JSON null":           {"null", "document: must be a mapping"},
		"no models":           {"lines: []", "models: is required"},
		"models not a list":   {"models: 5", "models: must be a list, not a single value"},
		"unknown key":         {"models: []\nmodel: []", "model: is not a known key"},
		"key twice":           {"models: []\nmodels: []", "models: is given twice"},
		"key twice in JSON":   {`{"models":[],"lines":[],"lines":[]}`, "lines: is given twice"},
		"model not a mapping": {"models: [5]", "models[0]: must be a mapping of keys to values"},
		"not UTF-8":           {"models: \xff", "line 1, column 9: is not valid UTF-8"},
		"YAML syntax":         {"models:\n  - id: a\n   kind: b\n", "line 3, column 4: is not valid YAML: "},
		"open bracket":        {"models: [", "line 1, column 9: is not valid YAML: "},
		"two documents":       {"models: []\n---\nmodels: []", "line 3, column 7: must be one document"},
		"YAML tag":            {"models: !!seq []", "line 1, column 9: tags and directives are not allowed"},
		"unknown anchor":      {"models: *x", `line 1, column 9: refers to the anchor "x"`},
		"anchor in itself":    {"models: &x [*x]", `line 1, column 13: refers to the anchor "x"`},
		"merge of a scalar":   {"models: [{<<: 1}]", "line 1, column 15: << accepts a mapping or a list of mappings only"},
		"several faults": {
			"models:\n- {id: a, kind: chat, context_window: 0, price: {input: -1, output: x}}\n- {id: a, kind: image, price: {1K: 1}}",
			"models[0].max_output_tokens: is required for chat models\nmodels[0].context_window: must be a whole number from 1 to 100000000\n" +
				"models[0].price.input: must not be negative\nmodels[0].price.output: must be a decimal number\nmodels[1].id: \"a\" is already the " +
				"id of models[0]",
		},

		"no id":                   {edit("id: a, ", ""), "models[0].id: is required"},
		"empty id":                {edit("id: a", `id: ""`), "models[0].id: must not be empty"},
		"invalid id":              {edit("id: a", `id: "a b"`), "models[0].id: must begin with a letter"},
		"long id":                 {edit("id: a", "id: "+strings.Repeat("a", 129)), "models[0].id: must not be longer than 128 bytes"},
		"id with a newline":       {edit("id: a", `id: "a\nb"`), "models[0].id: must not contain control characters"},
		"no kind":                 {edit("kind: chat, ", ""), "models[0].kind: is required: one of chat, image, video"},
		"unknown kind":            {edit("kind: chat", "kind: audio"), "models[0].kind: must be one of chat, image, video"},
		"unknown state":           {addKeys("state: closed"), "models[0].state: must be one of open, coming_soon, maintenance, retired"},
		"unknown form":            {addKeys("forms: [chat, smoke]"), "models[0].forms[1]: must be a form: chat, responses, messages or gemini"},
		"form for lines only":     {addKeys("forms: [interactions]"), "models[0].forms[0]: must be a form: chat, responses, messages or gemini"},
		"form twice":              {addKeys("forms: [chat, chat]"), "models[0].forms[1]: is given twice"},
		"no forms":                {addKeys("forms: []"), "models[0].forms: must name at least one"},
		"invalid reasoning":       {addKeys("reasoning: maybe"), "models[0].reasoning: must be true or false"},
		"unknown effort":          {addKeys("efforts: [low, much]"), "models[0].efforts[1]: must be one of none, minimal, low"},
		"effort twice":            {addKeys("efforts: [low, low]"), "models[0].efforts[1]: is given twice"},
		"efforts on an image":     {mediaYAML("kind: image, price: {1K: 1}, efforts: [low]"), "models[0].efforts: is for chat models only"},
		"no window":               {edit("context_window: 1000, ", ""), "models[0].context_window: is required for chat models"},
		"no output limit":         {edit("max_output_tokens: 100, ", ""), "models[0].max_output_tokens: is required for chat models"},
		"octal number":            {edit("1000", "01000"), "models[0].context_window: must be a whole number"},
		"number with underscores": {edit("1000", "1_000"), "models[0].context_window: must be a whole number"},
		"fractional number":       {edit("1000", "10.5"), "models[0].context_window: must be a whole number"},
		"quoted number":           {edit("1000", `"1000"`), "models[0].context_window: must be a whole number"},
		"huge number":             {edit("1000", "99999999999999999999"), "models[0].context_window: must be a whole number"},
		"negative count":          {addKeys("max_image_tokens: -1"), "models[0].max_image_tokens: must not be negative"},
		"default above max": {addKeys("default_output_tokens: 101"),
			"models[0].default_output_tokens: must not be larger than max_output_tokens, 100"},
		"image keys on chat": {addKeys("max_images: 2"), "models[0].max_images: is for image models only"},
		"video keys on chat": {addKeys("durations: [5]"), "models[0].durations: is for video models only"},
		"roles on an image": {mediaYAML("kind: image, price: {1K: 1}, max_references: 2, roles: [reference]"),
			"models[0].roles: is for video models only"},
		"unknown role": {mediaYAML("kind: video, per_clip: {720p: 1}, max_references: 2, roles: [middle]"),
			"models[0].roles[0]: must be one of first_frame, last_frame, reference"},
		"role twice": {mediaYAML("kind: video, per_clip: {720p: 1}, max_references: 2, roles: [reference, reference]"),
			"models[0].roles[1]: is given twice"},
		"roles without references": {mediaYAML("kind: video, per_clip: {720p: 1}, roles: [reference]"), "models[0].roles: have no effect"},
		"unknown audio": {mediaYAML("kind: video, per_clip: {720p: 1}, audio: maybe"),
			"models[0].audio: must be one of true, false, optional"},
		"params on chat":      {addKeys("params: [seed]"), "models[0].params: is for image and video models only"},
		"media keys on chat":  {addKeys(`ratios: ["1:1"]`), "models[0].ratios: is for image and video models only"},
		"null price":          {edit("{input: 1, output: 2}", "null"), "models[0].price: is required, because nothing runs without a price"},
		"price not a mapping": {edit("{input: 1, output: 2}", "3"), "models[0].price: must be a mapping"},
		"no output price":     {edit(", output: 2", ""), "models[0].price.output: is required"},
		"unknown price":       {edit("output: 2", "output: 2, ouput: 1"), "models[0].price.ouput: is not a known key"},
		"too many decimals": {edit("input: 1", "input: 0.0000000001"),
			"models[0].price.input: must be a decimal number of US dollars from 0 to 100000 with at most 9 decimals"},
		"price too high": {edit("input: 1", "input: 100001"), "models[0].price.input: must be a decimal number"},
		"above without threshold": {edit("output: 2", "output: 2, above: [{input: 1, output: 1}]"),
			"models[0].price.above[0].prompt_tokens: is required"},
		"above without output": {edit("output: 2", "output: 2, above: [{prompt_tokens: 5, input: 1}]"),
			"models[0].price.above[0].output: is required"},
		"above descends": {
			edit("output: 2", "output: 2, above: [{prompt_tokens: 5, input: 1, output: 1}, {prompt_tokens: 5, input: 1, output: 1}]"),
			"models[0].price.above[1].prompt_tokens: must be larger than in the previous entry, 5"},
		"negative factor": {edit("output: 2", "output: 2, options: {service_tier: {flex: -0.5}}"),
			"models[0].price.options.service_tier.flex: must not be negative"},
		"option without values": {edit("output: 2", "output: 2, options: {service_tier: {}}"),
			"models[0].price.options.service_tier: must name at least one value"},
		"option not a mapping": {edit("output: 2", "output: 2, options: {service_tier: 2}"),
			"models[0].price.options.service_tier: must be a mapping"},
		"negative tool price": {edit("output: 2", "output: 2, tools: {web_search: -1}"),
			"models[0].price.tools.web_search: must not be negative"},
		"invalid tool name": {edit("output: 2", `output: 2, tools: {"web search": 1}`),
			`models[0].price.tools."web search": is not the name of a tool`},

		"forms on an image":    {mediaYAML("kind: image, price: {1K: 1}, forms: [chat]"), "models[0].forms: is for chat models only"},
		"image without price":  {mediaYAML("kind: image"), "models[0].price: is required"},
		"image without tiers":  {mediaYAML("kind: image, price: {}"), "models[0].price: must have the price of at least one resolution tier"},
		"invalid tier":         {mediaYAML("kind: image, price: {1k: 1}"), "models[0].price.1k: is not a resolution tier"},
		"tier twice":           {mediaYAML("kind: image, price: {1K: 1, 1K: 2}"), "models[0].price.1K: is given twice"},
		"negative tier":        {mediaYAML("kind: image, price: {1K: -1}"), "models[0].price.1K: must not be negative"},
		"invalid ratio":        {mediaYAML("kind: image, price: {1K: 1}, ratios: [16x9]"), "models[0].ratios[0]: must be a ratio in quotes"},
		"ratio without quotes": {mediaYAML("kind: image, price: {1K: 1}, ratios: [[16, 9]]"), "models[0].ratios[0]: must be a ratio in quotes"},
		"ratio twice":          {mediaYAML(`kind: image, price: {1K: 1}, ratios: ["1:1", "1:1"]`), "models[0].ratios[1]: is given twice"},
		"max_images 0": {mediaYAML("kind: image, price: {1K: 1}, max_images: 0"),
			"models[0].max_images: must be a whole number from 1 to 100"},
		"per_clip on an image": {mediaYAML("kind: image, price: {1K: 1}, per_clip: {1K: 1}"), "models[0].per_clip: is for video models only"},
		"price and per_clip": {mediaYAML("kind: video, price: {720p: 1}, per_clip: {720p: 1}, durations: [5]"),
			"models[0].per_clip: cannot be combined with price"},
		"seconds without range": {mediaYAML("kind: video, price: {720p: 1}"), "models[0].durations: is required if a video is priced per second"},
		"no durations": {mediaYAML("kind: video, price: {720p: 1}, durations: []"),
			"models[0].durations: must name at least one length"},
		"invalid duration": {mediaYAML("kind: video, price: {720p: 1}, durations: [5, 0, 5]"),
			"models[0].durations[1]: must be a whole number from 1 to 3600\nmodels[0].durations[2]: is given twice"},
		"half a range": {mediaYAML("kind: video, price: {720p: 1}, durations: {min: 5}"), "models[0].durations.max: is required in a range"},
		"range backwards": {mediaYAML("kind: video, price: {720p: 1}, durations: {min: 5, max: 4}"),
			"models[0].durations.max: must not be smaller than min, 5"},
		"duration not a list": {mediaYAML("kind: video, price: {720p: 1}, durations: 5"),
			"models[0].durations: must be a list of seconds or {min, max}"},

		"line id twice": {lineYAML(sandbox) + "\n- {id: l, models: {a: b}, provider: sandbox}",
			`lines[1].id: "l" is already the id of lines[0]`},
		"invalid line id": {lineYAML(sandbox) + "\n- {id: l/m, models: {a: b}, provider: sandbox}",
			"lines[1].id: must begin with a letter"},
		"no provider": {lineYAML("weight: 1"), "lines[0].provider: is required: one of chatonly, cloud, openai, sandbox"},
		"unknown provider": {lineYAML("provider: nobody"),
			`lines[0].provider: "nobody" is not a provider of this version. The providers are chatonly, cloud, openai, sandbox`},
		"no address and no key": {lineYAML("provider: openai"),
			"lines[0].base_url: is required\nlines[0].api_key: is required for provider openai"},
		"literal key": {lineYAML(sandbox + ", api_key: sk-secret"),
			"lines[0].api_key: must refer to an environment variable, ${NAME}, to a file, ${file:PATH}, or to a stored secret, ${secret:NAME}"},
		"file reference without a path": {lineYAML(sandbox + `, api_key: "${file:}"`), "lines[0].api_key: must refer to an environment variable"},
		"no forms for a cloud": {lineYAML(`provider: cloud, api_key: "${KEY}"`),
			"lines[0].forms: is required for chat models of provider cloud, because its models differ in their forms: one or more of "},
		"no key for a cloud": {lineYAML("provider: cloud, forms: [chat]"), "lines[0].api_key: is required for provider cloud"},
		"unused key": {lineYAML("provider: cloud, forms: [chat], api_key: \"${KEY}\", options: {auth: host}"),
			"lines[0].api_key: cannot be combined with these options"},
		"key reference inside a text": {lineYAML(sandbox + `, api_key: "Bearer ${KEY}"`),
			"lines[0].api_key: must refer to an environment variable"},
		"not http": {lineYAML(sandbox + ", base_url: ftp://example.com"),
			"lines[0].base_url: must be an http or https address"},
		"no host": {lineYAML(sandbox + `, base_url: "https://"`), "lines[0].base_url: must be an http or https address"},
		"password in address": {lineYAML(sandbox + ", base_url: https://u:p@example.com"),
			"lines[0].base_url: must not contain a user or password"},
		"query in address": {lineYAML(sandbox + ", base_url: https://example.com/?key=1"), "lines[0].base_url: must not have a query"},
		"port out of range": {lineYAML(sandbox + ", base_url: https://example.com:99999"),
			"lines[0].base_url: must have a port from 1 to 65535"},
		"unknown model on a line": {"models: []\nlines: [{id: l, provider: sandbox, models: {x: y}}]",
			"lines[0].models.x: is not a model of this catalog"},
		"no line models": {"models: []\nlines: [{id: l, provider: sandbox}]", "lines[0].models: is required"},
		"empty provider id": {"models: [" + chatModel + "]\nlines: [{id: l, provider: sandbox, models: {a: ''}}]",
			"lines[0].models.a: must be the provider's id"},
		"form that the provider lacks": {lineYAML("provider: chatonly, forms: [messages]"),
			"lines[0].forms[0]: must be a form that provider chatonly has: chat"},
		"form of another provider": {lineYAML("provider: chatonly, forms: [gemini]"),
			"lines[0].forms[0]: must be a form that provider chatonly has: chat"},
		"no line forms": {lineYAML(sandbox + ", forms: []"), "lines[0].forms: must name at least one form"},
		"kind that the provider lacks": {"models: [{id: a, kind: image, price: {1K: 1}}]\nlines: [{id: l, provider: chatonly, models: {a: b}}]",
			"lines[0].models.a: is a model of kind image, which provider chatonly does not support"},
		"negative priority":       {lineYAML(sandbox + ", priority: -1"), "lines[0].priority: must not be negative"},
		"no weight":               {lineYAML(sandbox + ", weight: 0"), "lines[0].weight: must be a whole number from 1 to 1000000"},
		"negative max_concurrent": {lineYAML(sandbox + ", max_concurrent: -1"), "lines[0].max_concurrent: must not be negative"},
		"zero timeout":            {lineYAML(sandbox + ", timeouts: {idle: 0s}"), "lines[0].timeouts.idle: must be longer than zero"},
		"timeout without a unit":  {lineYAML(sandbox + ", timeouts: {idle: 30}"), "lines[0].timeouts.idle: must be a duration such as"},
		"timeout too long":        {lineYAML(sandbox + ", timeouts: {total: 25h}"), "lines[0].timeouts.total: must not be longer than 24h"},
		"unknown timeout":         {lineYAML(sandbox + ", timeouts: {first: 1s}"), "lines[0].timeouts.first: is not a known key"},
		"invalid expression": {lineYAML(sandbox + `, error_sentences: ["("]`),
			"lines[0].error_sentences[0]: is not a regular expression: missing closing )"},
		"empty expression": {lineYAML(sandbox + `, error_sentences: [""]`), "lines[0].error_sentences[0]: must not be empty"},
		"long expression": {lineYAML(sandbox + ", error_sentences: [" + strings.Repeat("a", 501) + "]"),
			"lines[0].error_sentences[0]: must not be longer than 500 bytes"},
		"options not a mapping": {lineYAML(sandbox + ", options: [1]"), "lines[0].options: must be a mapping"},
		"unknown option":        {lineYAML(sandbox + ", options: {nonsense: 1}"), "lines[0].options: nonsense is not an option of the sandbox"},
		"invalid option":        {lineYAML(sandbox + ", options: {delay: fast}"), "lines[0].options.delay: must be a duration"},
		"provider without options": {lineYAML("provider: chatonly, options: {x: 1}"),
			"lines[0].options: must be left out, because the provider has no options"},
		"null in an option": {lineYAML(sandbox + ", options: {x: [null]}"), "lines[0].options.x[0]: must not be null"},
		"invalid limit field": {lineYAML(sandbox + ", limit_field: max_output_tokens"),
			"lines[0].limit_field: must be one of max_tokens, max_completion_tokens"},
		"pass of a reserved field": {lineYAML(sandbox + ", pass: [provider, n]"),
			"lines[0].pass[1]: is a field that only the gateway sets"},
		"pass of an invalid field": {lineYAML(sandbox + `, pass: ["a b"]`), `lines[0].pass[0]: must be the name of a field, or "*"`},
		"pass of a field that is never sent": {lineYAML(sandbox + ", pass: [vector_store_ids]"),
			"lines[0].pass[0]: is a field that the gateway never sends"},
		"headers not a mapping": {lineYAML(sandbox + ", headers: [a]"), "lines[0].headers: must be a mapping"},
		"invalid header name":   {lineYAML(sandbox + `, headers: {"a b": c}`), `lines[0].headers."a b": is not the name of a header`},
		"header twice":          {lineYAML(sandbox + ", headers: {x-a: b, X-A: c}"), "lines[0].headers.X-A: is given twice"},
		"reserved headers": {
			lineYAML(sandbox + ", headers: {host: a, content-length: 5, connection: close, te: a, accept-encoding: gzip}"),
			"lines[0].headers.host: is a header that the gateway writes itself\n" +
				"lines[0].headers.content-length: is a header that the gateway writes itself\n" +
				"lines[0].headers.connection: is a header that the gateway writes itself\n" +
				"lines[0].headers.te: is a header that the gateway writes itself\n" +
				"lines[0].headers.accept-encoding: is a header that the gateway writes itself"},
		"authorization header": {lineYAML(sandbox + `, headers: {authorization: "Bearer secret"}`),
			"lines[0].headers.authorization: is a header that the gateway writes itself. Use api_key for a credential"},
		"key header of the provider": {lineYAML(sandbox + ", headers: {x-sand-key: secret}"),
			"lines[0].headers.x-sand-key: is a header that the gateway writes itself"},
		"literal credential in a header": {lineYAML(sandbox + ", headers: {api-key: secret}"),
			"lines[0].headers.api-key: must refer to an environment variable, ${NAME}, to a file, ${file:PATH}, " +
				"or to a stored secret, ${secret:NAME}. The catalog never"},
		"invalid reference in a header": {lineYAML(sandbox + `, headers: {x-a: "secret ${file:}"}`),
			"lines[0].headers.x-a: must refer to an environment variable, ${NAME}, to a file, ${file:PATH}, or to a stored secret, ${secret:NAME}"},
		"empty header":          {lineYAML(sandbox + `, headers: {x-a: ""}`), "lines[0].headers.x-a: must not be empty"},
		"header with a newline": {lineYAML(sandbox + `, headers: {x-a: "b\nc"}`), "lines[0].headers.x-a: must not contain control characters"},
		"set not a mapping":     {lineYAML(sandbox + ", set: [a]"), "lines[0].set: must be a mapping"},
		"set null":              {lineYAML(sandbox + ", set: {user: null}"), "lines[0].set.user: must not be null"},
		"set of reserved fields": {
			lineYAML(sandbox + ", set: {model: a, Stream: true, messages: [], n: 2, max_tokens: 5, store: true, stream_options: {}}"),
			"lines[0].set.model: is a field that only the gateway sets\n" +
				"lines[0].set.Stream: is a field that only the gateway sets\n" +
				"lines[0].set.messages: is a field that only the gateway sets\n" +
				"lines[0].set.n: is a field that only the gateway sets\n" +
				"lines[0].set.max_tokens: is a field that only the gateway sets\n" +
				"lines[0].set.store: is a field that only the gateway sets\n" +
				"lines[0].set.stream_options: is a field that only the gateway sets"},
		"set of an adapter field": {
			"models: [{id: a, kind: image, price: {1K: 1}}]\nlines: [{id: l, provider: sandbox, models: {a: b}, set: {size: x}}]",
			"lines[0].set.size: is the adapter's own for image model b"},
		"omit of an adapter field": {
			"models: [{id: a, kind: image, price: {1K: 1}}]\nlines: [{id: l, provider: sandbox, models: {a: b}, omit: [seed, size]}]",
			"lines[0].omit[1]: is the adapter's own for image model b"},
		"omit not a list": {lineYAML(sandbox + ", omit: user"), "lines[0].omit: must be a list"},
		"omit of reserved fields": {lineYAML(sandbox + ", omit: [input, n_predict]"),
			"lines[0].omit[0]: is a field that only the gateway sets\nlines[0].omit[1]: is a field that only the gateway sets"},
		"omit twice":   {lineYAML(sandbox + ", omit: [user, user]"), "lines[0].omit[1]: is given twice"},
		"set and omit": {lineYAML(sandbox + ", set: {user: a}, omit: [user]"), "lines[0].omit[0]: is also in set"},
		"omit of store": {lineYAML(sandbox + ", omit: [store]"),
			"lines[0].omit[0]: must not be omitted on lines with the form responses"},
		"cost not a mapping":  {lineYAML(sandbox + ", cost: 5"), "lines[0].cost: must be a mapping"},
		"cost without output": {lineYAML(sandbox + ", cost: {input: 1}"), "lines[0].cost.output: is required"},
		"cost of an unknown model": {lineYAML(sandbox + ", cost: {b: 1}"),
			"lines[0].cost.b: is neither a rate, nor a resolution tier, nor a model"},
		"negative cost":                  {lineYAML(sandbox + ", cost: {input: -1, output: 1}"), "lines[0].cost.input: must not be negative"},
		"cost per unit for a chat model": {lineYAML(sandbox + ", cost: {a: 1}"), "lines[0].cost.a: must be a mapping"},
		"tier cost for a chat model": {lineYAML(sandbox + ", cost: {a: {input: 1, output: 1, 1K: 1}}"),
			"lines[0].cost.a.1K: is not a known key"},
		"null cost": {lineYAML(sandbox + ", cost: {1K: null, 2K: 1}"), "lines[0].cost.1K: must be a single value"},
		"cost of an unknown tier": {
			"models: [{id: a, kind: image, price: {1K: 1}}]\nlines: [{id: l, provider: sandbox, models: {a: b}, cost: {a: {2K: 1}}}]",
			"lines[0].cost.a.2K: is not a known key"},
		"pass twice":            {lineYAML(sandbox + ", pass: [route, route]"), "lines[0].pass[1]: is given twice"},
		"pass not a list":       {lineYAML(sandbox + ", pass: provider"), "lines[0].pass: must be a list"},
		"invalid ignores_limit": {lineYAML(sandbox + ", ignores_limit: 5"), "lines[0].ignores_limit: must be true or false"},
		"invalid enabled":       {lineYAML(sandbox + ", enabled: perhaps"), "lines[0].enabled: must be true or false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Parse([]byte(tt.text), testProviders())
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("Parse: error %v, want Faults", err)
			}
			if strings.Contains(strings.ReplaceAll(err.Error(), "a stored secret, ${secret:NAME}", ""), "secret") {
				t.Errorf("Parse: error %v, want one without the secret", err)
			}
			want := strings.Split(tt.want, "\n")
			for i := range max(len(want), len(faults)) {
				switch {
				case i >= len(want):
					t.Errorf("unexpected fault: %s", faults[i])
				case i >= len(faults):
					t.Errorf("missing fault: %s", want[i])
				case !strings.HasPrefix(faults[i].String(), want[i]):
					t.Errorf("got fault %q, want %q", faults[i], want[i])
				}
			}
		})
	}
}

// TestFaultsAreReportedOnce checks that a fault of a model is not reported for the model's lines
// too.
func TestFaultsAreReportedOnce(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		strings.Replace(chatModel, "chat", "dance", 1):    "models[0].kind: must be one of chat, image, video",
		strings.Replace(chatModel, "kind: chat, ", "", 1): "models[0].kind: is required",
	} {
		_, _, err := Parse([]byte("models: ["+model+"]\nlines: [{id: l, provider: sandbox, models: {a: b}}]"), testProviders())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "lines[0]") {
			t.Errorf("%s: error %v, want only %q", model, err, want)
		}
	}
}

// TestDocumentLimits checks that oversized documents are rejected and do not exhaust the memory or
// the stack.
func TestDocumentLimits(t *testing.T) {
	t.Parallel()
	billionLaughs := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'k'; i++ {
		billionLaughs += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", i-1), 10), ", "))
	}
	for name, tt := range map[string]struct{ text, want string }{
		"text too large":                  {strings.Repeat(" ", maxDocument+1), "must not be larger than 4 MiB"},
		"a billion laughs":                {billionLaughs, "has more than 500000 values"},
		"size after expansion of aliases": {aliasYAML(200), "must not be larger than 4 MiB"},
		"nested brackets":                 {strings.Repeat("[", 1<<16), "nested deeper"},
		"nested braces":                   {strings.Repeat("{a: ", 1<<15), "nested deeper"},
		"nested JSON":                     {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper"},
		"nested dashes":                   {strings.Repeat("- ", 1<<16), "nested deeper"},
		"nested question marks":           {strings.Repeat("? ", 1<<15), "nested deeper"},
		"nested anchors":                  {strings.Repeat("&a ", 1<<15), ""},
		"nested blocks":                   {"models:\n" + nestedYAML(100), "nested deeper"},
		"too many models": {"models: [" + strings.Repeat("{},", MaxModels+1) + "]",
			"models: must not have more than 2000 entries"},
		"too many faults": {"models: [" + strings.Repeat("5,", 150) + "]", "document: has 50 more faults"},
		"too many sentences": {lineYAML("provider: sandbox, error_sentences: [" + strings.Repeat("a,", maxSentences+1) + "]"),
			"must not have more than 64 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Parse([]byte(tt.text), testProviders())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse: error %.300v, want %q", err, tt.want)
			}
		})
	}
}

// aliasYAML returns a small text in which lines share long lists through an alias.
func aliasYAML(lines int) string {
	var out strings.Builder
	out.WriteString("models: [" + chatModel + "]\nlines:\n- {id: l, provider: sandbox, models: {a: b}, error_sentences: &s [" +
		strings.Repeat(strings.Repeat("x", maxSentence)+", ", maxSentences) + "]}\n")
	for i := range lines {
		fmt.Fprintf(&out, "- {id: l%d, provider: sandbox, models: {a: b}, error_sentences: *s}\n", i)
	}
	return out.String()
}

// nestedYAML returns a block that is nested depth levels deep.
func nestedYAML(depth int) string {
	var out strings.Builder
	for i := range depth {
		out.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return out.String()
}

// TestFaultPositions checks the line and column of a fault in YAML and in JSON.
func TestFaultPositions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"models:\n  - id: a\n    kind: dance\n    price: {}\n":         "3:11",
		"{\"models\": [\n  {\"id\": \"a\", \"kind\": \"dance\"}\n]}\n": "2:23",
	} {
		_, _, err := Parse([]byte(text), nil)
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 1 {
			t.Fatalf("Parse: error %v, want one fault", err)
		}
		if got := fmt.Sprintf("%d:%d", faults[0].Line, faults[0].Column); got != want {
			t.Errorf("fault %s is at %s, want %s", faults[0], got, want)
		}
	}
}
