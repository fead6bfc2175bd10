// Package tone owns the sound of the sandbox: a tone with the spoken text hidden in it.
//
// Invariants: every format plays; the length in the header of a WAV file is right.
package tone

import (
	"embed"
	"encoding/base64"
	"encoding/binary"
	"math"
	"regexp"

	"tollgate/internal/sound"
)

// clips has a short tone in each compressed format, made with ffmpeg.
//
//go:embed clips
var clips embed.FS

const (
	sampleRate = 24_000
	// charactersPerSecond is the speed of the sandbox's speech in WAV and PCM.
	charactersPerSecond = 15
)

// mark matches the hidden text. A player skips it, or plays a short click.
var mark = regexp.MustCompile(`tollgate-sandbox-speech:([A-Za-z0-9+/=]*);`)

// Text returns the text hidden in a file by Speak. It returns false for other sound.
func Text(file []byte) (string, bool) {
	found := mark.FindSubmatch(file)
	if found == nil {
		return "", false
	}
	text, err := base64.StdEncoding.DecodeString(string(found[1]))
	return string(text), err == nil
}

// Speak returns sound in a format of `response_format` with a text hidden in it. It returns an error
// for an unknown format.
func Speak(text, format string) ([]byte, error) {
	hidden := []byte("tollgate-sandbox-speech:" + base64.StdEncoding.EncodeToString([]byte(text)) + ";")
	switch format {
	case "wav":
		return wav(samples(text, hidden)), nil
	case "pcm":
		return samples(text, hidden), nil
	}
	clip, err := clips.ReadFile("clips/tone." + format)
	if err != nil {
		return nil, err
	}
	if format == "mp3" || format == "aac" {
		return append(id3(hidden), clip...), nil
	}
	return append(clip, hidden...), nil // players skip all bytes after the last frame
}

// Silence returns a tenth of a second of silence as a WAV file.
func Silence() []byte { return wav(make([]byte, 2*sampleRate/10)) }

// samples returns 16-bit samples of a tone with the length of a text, and then the hidden bytes.
func samples(text string, hidden []byte) []byte {
	n := sampleRate * max(charactersPerSecond/2, len(text)) / charactersPerSecond
	out := make([]byte, 0, 2*n+len(hidden)+1)
	for i := range n {
		value := 6000 * math.Sin(2*math.Pi*440*float64(i)/sampleRate)
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(value)))
	}
	if out = append(out, hidden...); len(out)%2 == 1 {
		out = append(out, 0)
	}
	return out
}

// wav returns 16-bit samples with a header.
func wav(samples []byte) []byte {
	return append(sound.WAVHeader(sampleRate, uint32(len(samples))), samples...)
}

// id3 returns an ID3v2.3 tag with a private frame.
func id3(content []byte) []byte {
	frame := binary.BigEndian.AppendUint32([]byte("PRIV"), uint32(len(content)+1))
	frame = append(append(frame, 0, 0, 0), content...) // flags, and an empty owner
	size := len(frame)
	tag := []byte{'I', 'D', '3', 3, 0, 0, byte(size >> 21 & 127), byte(size >> 14 & 127), byte(size >> 7 & 127), byte(size & 127)}
	return append(tag, frame...)
}
