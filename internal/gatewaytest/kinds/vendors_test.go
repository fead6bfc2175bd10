package kinds

import (
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
	byCharacters := map[string]any{"characters": 15}
	const character = 15_000 // nano-dollars
	return []speechCase{
		{name: "elevenlabs", price: byCharacters, line: eleven, status: 200, want: fakevoice.Sound, cost: 40 * character, source: "gateway"},
		{name: "elevenlabs broken off", price: byCharacters, line: eleven, request: `,"input":"` + spokenText + `[cut]"`, status: 200, cut: true,
			want: fakevoice.Sound[:15_999], cost: 32 * character, source: "gateway"},
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
