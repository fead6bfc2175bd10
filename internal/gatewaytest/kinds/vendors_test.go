package kinds

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakevoice"
	"tollgate/internal/gatewaytest/scene"
)

// voices is the option of lines whose vendor has other voices than OpenAI.
func voices(voice string) map[string]any {
	return map[string]any{"voices": map[string]any{"alloy": voice}}
}

// vendorSpeech returns cases of vendors with an API of their own.
func vendorSpeech(t *testing.T) []speechCase {
	eleven := map[string]any{"provider": "elevenlabs", "base_url": fakevoice.NewElevenLabs(t, scene.Credential).URL,
		"options": voices("rachel")}
	minimax := map[string]any{"provider": "minimax", "base_url": fakevoice.NewMiniMax(t, scene.Credential).URL, "options": voices("radio")}
	qwen := map[string]any{"provider": "dashscope", "base_url": fakevoice.NewDashScope(t, scene.Credential).URL, "options": voices("Cherry")}
	gemini := map[string]any{"provider": "gemini", "base_url": fakevoice.NewGemini(t, scene.Credential).URL, "options": voices("Kore")}
	byCharacters, byTokens := map[string]any{"characters": 15}, map[string]any{"input": 1, "output_audio": 10}
	tokens := map[string]any{"max_output_tokens": 1000, "formats": []string{"pcm", "wav"}}
	const character = 15_000 // nano-dollars
	spoken := func(mark string) string { return `,"response_format":"pcm","input":"` + spokenText + mark + `"` }
	return []speechCase{
		{name: "gemini", price: byTokens, more: tokens, line: gemini, request: spoken(""), status: 200, want: fakevoice.Sound(),
			cost: 9*1000 + 25*10_000, source: "provider"},
		{name: "gemini with a header", price: byTokens, more: tokens, line: gemini, request: `,"response_format":"wav"`, status: 200,
			want: "RIFF\xff\xff\xff\xffWAVE", cost: 9*1000 + 25*10_000, source: "provider"},
		{name: "gemini absurd", price: byTokens, more: tokens, line: gemini, request: spoken("[absurd]"), status: 200, want: fakevoice.Sound(),
			cost: 18*1000 + 32*10_000, source: "gateway"},
		{name: "gemini without usage", price: byTokens, more: tokens, line: gemini, request: spoken("[silent]"), status: 200,
			want: fakevoice.Sound(), cost: 9*1000 + 32*10_000, source: "both"},
		{name: "gemini broken off", price: byTokens, more: tokens, line: gemini, request: spoken("[cut]"), status: 200, cut: true,
			want: fakevoice.Sound()[:24_000], cost: 17*1000 + 32*10_000, source: "gateway"},
		{name: "gemini without mp3", price: byTokens, more: tokens, line: gemini, status: 400, want: `"param":"response_format"`},
		{name: "gemini blocked", price: byTokens, more: tokens, line: gemini, request: spoken("[safety]"), status: 400, want: "content_filter"},
		{name: "minimax", price: byCharacters, more: map[string]any{"wide_characters": 2}, line: minimax, request: `,"input":"中a"`, status: 200,
			want: fakevoice.Sound(), cost: 3 * character, source: "gateway"},
		{name: "minimax late", price: byCharacters, line: minimax, request: `,"input":"` + spokenText + `[late]"`, status: 200, cut: true,
			want: fakevoice.Sound()[:7_999], cost: 16 * character, source: "gateway"},
		{name: "qwen", price: byCharacters, more: map[string]any{"formats": []string{"wav", "pcm"}}, line: qwen, request: spoken(""), status: 200,
			want: fakevoice.Sound(), cost: 40 * character, source: "gateway"},
		{name: "qwen by tokens", price: byTokens, more: tokens, line: qwen, request: spoken("[tokens]"), status: 200, want: fakevoice.Sound(),
			cost: 9*1000 + 25*10_000, source: "provider"},
		{name: "elevenlabs", price: byCharacters, line: eleven, status: 200, want: fakevoice.Sound(), cost: 40 * character, source: "gateway"},
		{name: "elevenlabs broken off", price: byCharacters, line: eleven, request: `,"input":"` + spokenText + `[cut]"`, status: 200, cut: true,
			want: fakevoice.Sound()[:15_999], cost: 32 * character, source: "gateway"},
		{name: "elevenlabs refused", price: byCharacters, line: eleven, request: `,"response_format":"flac"`, status: 400,
			want: `"param":"response_format"`},
		{name: "elevenlabs busy", price: byCharacters, line: eleven, request: `,"input":"[busy]"`, status: 502, want: "upstream_busy"},
	}
}

// vendorTranscriptions returns cases of vendors with an API of their own. The fakes report 5.2 seconds or nothing, and
// their last word ends at 4.5.
func vendorTranscriptions(t *testing.T) []transcriptionCase {
	byMinutes := map[string]any{"price": map[string]any{"minutes": 0.06}}
	const second = 1_000_000 // nano-dollars
	file := wavFile(44_000)  // 5.5 s
	deepgram := map[string]any{"provider": "deepgram", "base_url": fakevoice.NewDeepgram(t, scene.Credential).URL}
	eleven := map[string]any{"provider": "elevenlabs", "base_url": fakevoice.NewElevenLabs(t, scene.Credential).URL}
	with := func(mark string) string { return file + "[" + mark + "]" }
	return []transcriptionCase{
		{name: "deepgram", model: byMinutes, file: file, line: deepgram, status: 200, want: fakevoice.Text, cost: 6 * second, source: "provider"},
		{name: "deepgram subtitles", model: byMinutes, file: file, fields: []formPart{{"response_format", "srt"}}, line: deepgram,
			status: 200, want: "1\n00:00:00,100 --> 00:00:01,000\nHello world.\n\n2\n", cost: 6 * second, source: "gateway"},
		{name: "deepgram absurd", model: byMinutes, file: with("absurd"), line: deepgram, status: 200, want: fakevoice.Text, cost: 6 * second,
			source: "gateway"},
		{name: "deepgram silent", model: byMinutes, file: with("silent"), line: deepgram, status: 200, want: fakevoice.Text, cost: 6 * second,
			source: "gateway"},
		{name: "deepgram stream", model: byMinutes, file: file, fields: []formPart{{"stream", "true"}}, line: deepgram, status: 200,
			want: `{"text":"` + fakevoice.Text, cost: 6 * second, source: "provider"},
		{name: "deepgram too large", model: byMinutes, file: with("long"), line: deepgram, status: 413, want: "Maximum request size"},
		{name: "deepgram without credits", model: byMinutes, file: with("broke"), line: deepgram, status: 502, want: "upstream_unavailable"},
		{name: "deepgram cut", model: byMinutes, file: with("cut"), line: deepgram, status: 502, want: "upstream_connection_error"},
		{name: "elevenlabs", model: byMinutes, file: file, line: eleven, status: 200, want: fakevoice.Text, cost: 6 * second, source: "gateway"},
		{name: "elevenlabs verbose", model: byMinutes, file: file, fields: []formPart{{"response_format", "verbose_json"},
			{"timestamp_granularities[]", "word"}}, line: eleven, status: 200, want: `"words":[{"word":"Hello"`, cost: 6 * second,
			source: "provider"},
		{name: "elevenlabs refused", model: byMinutes, file: file, fields: []formPart{{"prompt", "Tolkien"}}, line: eleven, status: 400,
			want: `"param":"prompt"`},
	}
}

// titan checks that a vendor with one text a call gets several calls, which are one answer in order and one charge.
func titan(t *testing.T) scene.Scenario {
	v := newVendor(t, func(n int, _ string) (int, string) {
		return 200, fmt.Sprintf(`{"embedding":[%d],"inputTextTokenCount":%d}`, n, n)
	})
	return scenario("one text a call", inputModel("titan-embed", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/embeddings", `{"model":"titan-embed","input":["hello","you","there"]}`)
		want := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]},` +
			`{"object":"embedding","index":2,"embedding":[3]}],"usage":{"prompt_tokens":6,"total_tokens":6},"model":"titan-embed"}`
		if a.Status != 200 || strings.TrimSpace(a.Raw) != want {
			t.Errorf("got %d %s, want %s", a.Status, a.Raw, want)
		}
		if got := v.asked(); fmt.Sprint(got) != `[{"inputText":"hello"} {"inputText":"you"} {"inputText":"there"}]` {
			t.Errorf("the provider got %q, want a call for each text", got)
		}
		c.CheckCharge(a, (1+2+3)*tokenPrice)
	}, scene.ChatLine("titan-embed", v.URL, map[string]any{"provider": "bedrock", "max_inputs": 2}, "titan-embed"))
}

// batch checks embeddings of Gemini in base64. Gemini reports no usage, so the gateway counts.
func batch(t *testing.T) scene.Scenario {
	v := newVendor(t, func(int, string) (int, string) { return 200, `{"embeddings":[{"values":[0.5]},{"values":[1.5]}]}` })
	return scenario("of Gemini", inputModel("gemini-embed", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		a := c.Post("/v1/embeddings", `{"model":"gemini-embed","input":["hello","you"],"encoding_format":"base64"}`)
		const want = `"data":[{"object":"embedding","index":0,"embedding":"AAAAPw=="},{"object":"embedding","index":1,"embedding":"AADAPw=="}]`
		if a.Status != 200 || !strings.Contains(a.Raw, want) {
			t.Errorf("got %d %s, want %s", a.Status, a.Raw, want)
		}
		c.CheckCharge(a, 2*tokenPrice)
		if r := receiptOf(t, g, c.Account, a.ID()); r.Source != "gateway" {
			t.Errorf("receipt: got %+v, want a count by the gateway", r)
		}
	}, scene.ChatLine("gemini-embed", v.URL, map[string]any{"provider": "gemini"}, "gemini-embed"))
}

// unknownTokens checks that lists of tokens go to a line that knows them, and are refused without one.
func unknownTokens(t *testing.T) scene.Scenario {
	gemini := newVendor(t, func(int, string) (int, string) { return 500, `{}` })
	openai := newVendor(t, func(int, string) (int, string) { return vectors(1, `{"prompt_tokens":2}`) })
	first := scene.ChatLine("tokens-1", gemini.URL, map[string]any{"provider": "gemini", "priority": 1}, "tokens", "lone-tokens")
	second := scene.ChatLine("tokens-2", openai.URL, map[string]any{"priority": 2}, "tokens")
	s := scenario("of tokens", inputModel("tokens", nil), func(t *testing.T, g *scene.Gateway) {
		c := newClient(t, g)
		if a := c.Post("/v1/embeddings", `{"model":"tokens","input":[1,2]}`); a.Status != 200 || len(gemini.asked()) != 0 {
			t.Errorf("got %d %s and %d calls of Gemini, want the answer of the other line", a.Status, a.Raw, len(gemini.asked()))
		}
		a := c.Post("/v1/embeddings", `{"model":"lone-tokens","input":[[1,2]]}`)
		if got := fmt.Sprintf("%d %s %s", a.Status, a.Err().Code, a.Err().Param()); got != "400 invalid_request input" {
			t.Errorf("got %s, want 400 invalid_request input", got)
		}
	}, first, second)
	s.Models = append(s.Models, inputModel("lone-tokens", nil))
	return s
}
