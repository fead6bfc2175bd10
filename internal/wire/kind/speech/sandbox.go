package speech

import (
	"encoding/base64"
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/sound/tone"
	"tollgate/internal/wire/kind"
)

// maxDelta is the sound of one event of the sandbox, in bytes.
const maxDelta = 12 << 10

// speak returns the sandbox's answer to a body.
func speak(d *kind.Definition, body []byte) (kind.Made, error) {
	opened, err := open(body)
	if err != nil {
		return kind.Made{}, err
	}
	r := opened.(*request)
	if err := r.Check(kind.DefaultLimits{Kind: d}); err != nil {
		return kind.Made{}, err
	}
	sound, err := tone.Speak(r.text, r.format)
	if err != nil {
		return kind.Made{}, fault.Unavailable(err)
	}
	if !r.events {
		return kind.Made{ContentType: r.soundType(), Body: sound}, nil
	}
	var out []byte
	for len(sound) > 0 {
		n := min(len(sound), maxDelta)
		out = fmt.Appendf(out, "data: {\"type\":\"speech.audio.delta\",\"audio\":%q}\n\n", base64.StdEncoding.EncodeToString(sound[:n]))
		sound = sound[n:]
	}
	input, output := max(1, len(r.text)/4), max(1, len(r.text)*2)
	out = fmt.Appendf(out,
		"data: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":%d,\"output_tokens\":%d,\"total_tokens\":%d}}\n\n",
		input, output, input+output)
	return kind.Made{ContentType: "text/event-stream", Body: out}, nil
}
