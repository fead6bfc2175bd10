package malformed

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// mutation makes a request malformed in one way. Some random choices may leave it valid.
type mutation struct {
	name   string
	mutate func(r *rand.Rand, g *generator, q *request)
}

// mutations returns all mutations. Important mutations appear more than once.
func mutations() []mutation {
	body := []mutation{
		{"bytes flipped", flip}, {"body truncated", truncate}, {"key repeated", repeatKey}, {"key in another case", foldKey},
		{"value of a wrong type", wrongType}, {"value of a wrong type", wrongType}, {"deep nesting", nest}, {"invalid text",
			badText},
		{"piece repeated", repeatOrRemove}, {"another body", anotherBody}, {"odd address", oddAddress}, {"odd address", oddAddress},
		{"odd field", oddField}, {"odd field", oddField},
	}
	return append(append(body, body...), []mutation{
		{"odd content type", oddType}, {"odd query", oddQuery}, {"odd id", oddID}, {"odd path", oddPath}, {"odd method", oddMethod},
		{"odd key", oddKey}, {"odd key", oddKey}, {"odd header", oddHeader}, {"odd header", oddHeader}, {"odd framing", oddFrame},
		{"incomplete", breakOff}, {"not HTTP", noHTTP},
	}...)
}

func flip(r *rand.Rand, _ *generator, q *request) {
	if len(q.body) == 0 {
		return
	}
	q.body = bytes.Clone(q.body)
	for range 1 + r.IntN(4) {
		q.body[r.IntN(len(q.body))] ^= byte(1 << r.IntN(8))
	}
}

func truncate(r *rand.Rand, _ *generator, q *request) {
	if len(q.body) > 0 {
		q.body = q.body[:r.IntN(len(q.body))]
	}
}

// repeatOrRemove repeats or removes a piece of the body.
func repeatOrRemove(r *rand.Rand, _ *generator, q *request) {
	if len(q.body) < 2 {
		return
	}
	from := r.IntN(len(q.body) - 1)
	to := min(len(q.body), from+1+r.IntN(64))
	if r.IntN(2) == 0 {
		q.body = append(bytes.Clone(q.body[:from]), q.body[to:]...)
		return
	}
	at := r.IntN(len(q.body))
	q.body = bytes.Join([][]byte{q.body[:at], q.body[from:to], q.body[at:]}, nil)
}

var (
	keyPattern    = regexp.MustCompile(`"[a-zA-Z_]+":`)
	scalarPattern = regexp.MustCompile(`:\s*("(?:[^"\\]|\\.)*"|-?[0-9.]+|true|false|null)`)
)

// match returns a random match of a pattern in the body, or nil.
func match(r *rand.Rand, p *regexp.Regexp, body []byte) []int {
	return pick(r, p.FindAllSubmatchIndex(body, -1))
}

// insert inserts text into the body.
func (q *request) insert(at int, text string) {
	q.body = bytes.Join([][]byte{q.body[:at], []byte(text), q.body[at:]}, nil)
}

// replace replaces a part of the body.
func (q *request) replace(from, to int, text string) {
	q.body = bytes.Join([][]byte{q.body[:from], []byte(text), q.body[to:]}, nil)
}

// repeatKey repeats a key, with another value, before the key.
func repeatKey(r *rand.Rand, _ *generator, q *request) {
	at := match(r, keyPattern, q.body)
	if at == nil {
		return
	}
	key := string(q.body[at[0]+1 : at[1]-2])
	if r.IntN(3) == 0 {
		key = fmt.Sprintf(`\u%04x%s`, key[0], key[1:])
	}
	q.insert(at[0], fmt.Sprintf(`"%s":%s,`, key, pick(r, values())))
}

// foldKey changes the case of a key, or replaces letters by other letters with the same case folding.
func foldKey(r *rand.Rand, _ *generator, q *request) {
	at := match(r, keyPattern, q.body)
	if at == nil {
		return
	}
	key := string(q.body[at[0]+1 : at[1]-2])
	folded := pick(r, []string{strings.ToUpper(key), strings.ToUpper(key[:1]) + key[1:], strings.ReplaceAll(key, "s", "ſ"),
		strings.ReplaceAll(key, "k", "K")})
	if r.IntN(2) == 0 {
		q.insert(at[0], fmt.Sprintf(`"%s":%s,`, folded, pick(r, values())))
		return
	}
	q.replace(at[0]+1, at[1]-2, folded)
}

// values returns unexpected values of a field.
func values() []string {
	return []string{
		`null`, `true`, `false`, `0`, `-1`, `-0`, `1.5`, `1e2`, `1e400`, `-1e-400`, `9223372036854775808`,
		`99999999999999999999999999999999`,
		`0.000000000000000000000001`, `2147483648`, `NaN`, `Infinity`, `01`, `+1`, `0x10`, `""`, `" "`, `"\u0000"`, `"\ud800"`,
		`"\udc00\ud800"`, `"\x"`, `"a` + "\x00" + `"`,
		`[]`, `{}`, `[null]`, `[[]]`, `{"":{}}`, `"` + strings.Repeat("é", 5000) + `"`, `"1"`, `"true"`, `['a']`, `undefined`,
		`"\u202e\ufeff"`, `[{"type":"text","text":null}]`,
		`{"type":"function"}`, `[1,"a",{},[],null]`, `"data:image/png;base64,AAAA"`, `"data:,"`, `"data:image/svg+xml,<svg/>"`,
	}
}

func wrongType(r *rand.Rand, _ *generator, q *request) {
	if at := match(r, scalarPattern, q.body); at != nil {
		q.replace(at[2], at[3], pick(r, values()))
	}
}

// nest replaces a value by nested brackets, closed or open.
func nest(r *rand.Rand, _ *generator, q *request) {
	at := match(r, scalarPattern, q.body)
	if at == nil {
		return
	}
	depth := pick(r, []int{50, 890, 1_000, 10_001, 60_000})
	open, end := "[", "]"
	if r.IntN(2) == 0 {
		open, end = `{"a":`, "}"
		depth /= 5
	}
	text := strings.Repeat(open, depth) + "1"
	if r.IntN(3) > 0 {
		text += strings.Repeat(end, depth)
	}
	q.replace(at[2], at[3], text)
}

func badText(r *rand.Rand, _ *generator, q *request) {
	at := 0
	if len(q.body) > 0 {
		at = r.IntN(len(q.body))
	}
	q.insert(at, pick(r, []string{"\xff", "\xc0\x80", "\xed\xa0\x80", "\x00", "\xf5\x80\x80\x80", "\xe2\x82", "\ufeff", "\u2028",
		"\u0085", "\x1b[2J", "//", "/**/", "\r", "\x7f"}))
}

func anotherBody(r *rand.Rand, g *generator, q *request) {
	var others []string
	for _, route := range g.routes { // not over the map, whose order is random
		for _, s := range g.samples[route] {
			others = append(others, s.body)
		}
	}
	q.body = []byte(pick(r, append([]string{
		"", "null", "[]", `""`, "0", "{}", "{", "}", "{}{}", "{},", `{"a"}`, `{"model"}`, `{"model":"own"}`,
		`{"model":null,"messages":null}`, `[{"model":"own"}]`,
		strings.Repeat(" ", 64<<10), strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 20_000),
		"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "\xff\xfe{\x00}\x00", "model=own",
		strings.Repeat("x", 300<<10), `{"model":"own","messages":[` + strings.Repeat(`{"role":"user","content":"x"},`,
			2000) + `{"role":"user","content":"x"}]}`,
		"models: &a [*a]", "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]", "models: !!binary x", "--boundary0123456789\r\n\r\n",
		"--boundary0123456789--",
	}, others...)))
}

// addresses returns addresses for references and callbacks. All of them lead to this machine or
// nowhere.
func addresses(good string) []string {
	port := good[strings.LastIndexByte(good, ':'):]
	return []string{
		good + "/callback", good + "/p.png", good + "/redirect", good + "/text.png", good + "/empty.png", good + "/missing",
		"http://127.0.0.2" + port + "/p.png",
		"http://localhost" + port, "http://[::1]" + port, "http://[::ffff:127.0.0.2]" + port, "http://0" + port,
		"http://0.0.0.0" + port, "http://127.2" + port, "http://2130706434" + port,
		"http://0x7f000002" + port, "http://0177.0.0.2" + port, "http://169.254.169.254/latest/meta-data", "http://[fe80::1%25lo]/",
		"http://10.0.0.1/", "http://192.168.0.1:22/", "http://224.0.0.1/",
		"http://100.64.0.1/", "http://[64:ff9b::7f00:2]/", "http://host.invalid/p.png", "http://host.invalid./",
		"https://" + strings.Repeat("a", 64) + ".invalid/", "http://user:pass@host.invalid/",
		"http://host.invalid:0/", "http://host.invalid:99999/", "http://host.invalid:x/", "ftp://host.invalid/",
		"file:///etc/hosts", "javascript:alert(1)", "gopher://host.invalid", "//host.invalid/",
		"http:/host.invalid", "http://", "http:///p", "://", "", " ", "http://host.invalid/\x00", "http://host.invalid/\r\nX: y",
		"http://ho st.invalid/", "http://h\u00f6st.invalid/", "HTTP://HOST.INVALID",
		"http://host.invalid/" + strings.Repeat("a", 1990), "http://host.invalid/" + strings.Repeat("a", 100_000),
		"http://host.invalid/?" + strings.Repeat("%", 20), "http://host.invalid\\@127.0.0.2/",
		"http://127.0.0.2#@host.invalid/", "data:image/png;base64,", "data:image/png;base64,!!!!", "data:video/mp4;base64,AAAA",
		"data:text/html,<b>", "data:image/png;base64," + strings.Repeat("A", 100_000),
	}
}

// oddAddress adds an address to the body, or replaces an address in the body.
func oddAddress(r *rand.Rand, g *generator, q *request) {
	field := pick(r, []string{"callback_url", "callBackUrl", "image", "images", "reference_images", "references", "url",
		"image_url", "alert_url"})
	value := fmt.Sprintf("%q", pick(r, addresses(g.address)))
	value = pick(r, []string{value, value, "[" + value + "]", `{"url":` + value + `}`, `[{"url":` + value + `,"type":"video"}]`,
		strings.ReplaceAll(value, `"`, "")})
	if at := match(r, regexp.MustCompile(`"(?:http[^"]*|data:[^"]*)"`), q.body); at != nil && r.IntN(2) == 0 {
		q.replace(at[0], at[1], value)
		return
	}
	q.field(field, value)
}

// field adds a field at the beginning of the body's object.
func (q *request) field(name, value string) {
	if bytes.HasPrefix(q.body, []byte("{")) {
		q.insert(1, fmt.Sprintf("%q:%s,", name, value))
	}
}

// oddField adds a known field with an unexpected value.
func oddField(r *rand.Rand, _ *generator, q *request) {
	name := pick(r, []string{
		"model", "messages", "input", "max_tokens", "max_completion_tokens", "max_output_tokens", "stream", "stream_options", "n",
		"tools", "tool_choice", "functions", "service_tier", "speed", "store",
		"background", "previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options",
		"modalities", "audio", "response_format", "text", "reasoning", "thinking", "system",
		"metadata", "stop", "stop_sequences", "logit_bias", "size", "resolution", "ratio", "aspect_ratio", "duration", "seed",
		"style", "quality", "provider", "models", "route", "plugins", "transforms",
		"usd", "name", "rpm", "allowed_models", "allowed_ips", "events", "secret", "disabled", "id", "account", "balance_usd",
		"Model", "N", "Max_Tokens", "ſtream", "__proto__", "", "a.b[0]", "\u0000",
	})
	value := pick(r, append(values(), `"own"`, `"chat-line"`, `"family"`, `"easel"`, `"reel"`, `"maintained"`, `"retired"`,
		`"coming"`, `"nobody"`, `"16:9"`, `"2K"`, `"1024x1024"`, `"99999x1"`,
		`"0x0"`, `"1:0"`, `"priority"`, `[{"type":"web_search"}]`, `[{"type":"file_search","vector_store_ids":["v"]}]`,
		`[{"type":"input_file","file_id":"f"}]`, `{"type":"json_schema","json_schema":{}}`))
	q.field(name, value)
}
