package transcription

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/sound"
	"tollgate/internal/sound/tone"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
)

// maxSandboxFile is the part of a file read by the sandbox, in bytes.
const maxSandboxFile = 32 << 20

// probe returns the request of a probe: a tenth of a second of sound.
func probe(model string, l kind.ModelLimits) ([]byte, *kind.Upload) {
	silence := tone.Silence()
	return []byte(`{"model":` + string(rawjson.Quote(model)) + kind.ProbeFormat(l) + `}`), &kind.Upload{
		Name: "probe.wav", ContentType: "audio/wav", Bytes: bytes.NewReader(silence), Size: int64(len(silence)), Duration: 100 * time.Millisecond,
	}
}

// sandbox returns the text of the sandbox's own speech, or the length of another file.
func sandbox(body []byte, file *kind.Upload) (kind.Made, error) {
	opened, err := open(body)
	if err != nil {
		return kind.Made{}, err
	}
	r := opened.(*request)
	r.SetFile(file)
	if err := r.Check(kind.DefaultLimits{Kind: Definition()}); err != nil {
		return kind.Made{}, err
	}
	start, err := io.ReadAll(io.NewSectionReader(file.Bytes, 0, min(file.Size, maxSandboxFile)))
	if err != nil {
		return kind.Made{}, fault.Unavailable(err)
	}
	length, _ := sound.Duration(file.Bytes, file.Size)
	seconds := max(1, wholeSeconds(length))
	text, ok := tone.Text(start)
	if !ok {
		text = fmt.Sprintf("This is the sandbox. The file has %d seconds of sound.", seconds)
	}
	return r.write(text, seconds), nil
}

// write returns a text in the requested format.
func (r *request) write(text string, seconds int64) kind.Made {
	quoted := rawjson.Quote(text)
	usage := fmt.Sprintf(`{"type":"duration","seconds":%d}`, seconds)
	clock := func(separator string) string {
		return fmt.Sprintf("%02d:%02d:%02d%s000", seconds/3600, seconds/60%60, seconds%60, separator)
	}
	switch {
	case r.stream:
		return kind.Made{ContentType: "text/event-stream", Body: fmt.Appendf(nil,
			"data: {\"type\":\"transcript.text.delta\",\"delta\":%s}\n\ndata: {\"type\":\"transcript.text.done\",\"text\":%s,\"usage\":%s}\n\n",
			quoted, quoted, usage)}
	case r.format == "text":
		return kind.Made{ContentType: "text/plain; charset=utf-8", Body: []byte(text + "\n")}
	case r.format == "srt":
		return kind.Made{ContentType: "text/plain; charset=utf-8", Body: fmt.Appendf(nil, "1\n00:00:00,000 --> %s\n%s\n\n", clock(","), text)}
	case r.format == "vtt":
		return kind.Made{ContentType: "text/vtt; charset=utf-8", Body: fmt.Appendf(nil,
			"WEBVTT\n\n00:00:00.000 --> %s\n%s\n\n", clock("."), text)}
	case r.format == "verbose_json" || r.format == "diarized_json":
		segment := fmt.Sprintf(`{"id":0,"start":0,"end":%d,"text":%s}`, seconds, quoted)
		if r.format == "diarized_json" {
			segment = strings.Replace(segment, "{", `{"type":"transcript.text.segment","speaker":"A",`, 1)
		}
		return kind.MadeJSON(fmt.Appendf(nil, `{"task":"transcribe","language":"english","duration":%d,"text":%s,"segments":[%s],"usage":%s}`,
			seconds, quoted, segment, usage))
	}
	return kind.MadeJSON(fmt.Appendf(nil, `{"text":%s,"usage":%s}`, quoted, usage))
}
