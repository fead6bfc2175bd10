package form

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// FindAudio looks for audio in a content part, or what stands for one, however
// it is wrapped. It returns the path of the audio, and false if there is none.
func FindAudio(value []byte, depth int) (at string, found bool) {
	const deepest = 32 // deeper than any part that a provider knows
	if depth > deepest || len(value) == 0 {
		return "", false
	}
	switch value[0] {
	case '{':
		for name, inner := range rawjson.Members(value) {
			if holdsAudio(name, inner) {
				return "." + string(name), true
			}
			if at, found = FindAudio(inner, depth+1); found {
				return "." + string(name) + at, true
			}
		}
	case '[':
		for i, inner := range rawjson.Elements(value) {
			if at, found = FindAudio(inner, depth+1); found {
				return fmt.Sprintf("[%d]%s", i, at), true
			}
		}
	}
	return "", false
}

// audioEndings are the endings of the names of audio files.
var audioEndings = []string{
	".mp3", ".wav", ".wave", ".m4a", ".aac", ".ogg", ".oga", ".opus", ".flac", ".aif", ".aiff", ".amr", ".wma", ".weba",
	".mka", ".pcm", ".pcm16",
}

// ogg is the type of sound that does not say so.
const ogg = "application/ogg"

// holdsAudio tells whether a member of a part holds audio: by its own name, by a
// type, by the head of a data address, or by the name of a file. Names are
// compared without regard to case and underscores, as vendors spell them.
func holdsAudio(name, value []byte) bool {
	switch {
	case string(name) == "text" || rawjson.NonNull(value) == nil || string(value) == "false":
		return false
	case string(name) == "type" && rawjson.IsPlainName(value) && bytes.IndexByte(value, '\\') < 0:
		return bytes.Contains(value, []byte("audio"))
	}
	word := strings.ReplaceAll(strings.ToLower(string(name)), "_", "")
	switch word {
	case "audio", "inputaudio", "audiourl":
		return true
	}
	if !rawjson.IsText(value) {
		return false
	}
	head := textHead(value)
	switch {
	case strings.HasPrefix(head, "data:audio/") || strings.HasPrefix(head, "data:"+ogg):
		return true
	case word == "type":
		return strings.Contains(head, "audio")
	case word == "mediatype" || word == "mimetype" || word == "contenttype":
		return strings.HasPrefix(head, "audio") || strings.HasPrefix(head, ogg)
	case word == "format":
		return strings.HasPrefix(head, "audio") || slices.Contains(audioEndings, "."+head)
	case word == "filename" || strings.HasSuffix(word, "url") || strings.HasSuffix(word, "uri"):
		return !strings.HasPrefix(head, "data:") && isAudioName(value)
	}
	return false
}

// isAudioName tells whether the name or the address of a file ends like one of
// audio.
func isAudioName(raw []byte) bool {
	const longest = 8 << 10 // of an address
	if len(raw) > longest {
		return false
	}
	name := rawjson.Unquote(raw)
	if i := strings.IndexAny(name, "?#"); i >= 0 {
		name = name[:i]
	}
	return slices.Contains(audioEndings, strings.ToLower(path.Ext(strings.TrimSpace(name))))
}

// textHead returns the beginning of a JSON string without escapes and white
// space, in small letters: enough to tell the type of a data address.
func textHead(raw []byte) string {
	const most = 96 // bytes, as written
	end := 1
	for end < len(raw)-1 && end < most {
		switch {
		case raw[end] != '\\':
			end++
		case end+1 < len(raw) && raw[end+1] == 'u':
			end += 6
		default:
			end += 2
		}
	}
	text := rawjson.Unquote(append(slices.Clone(raw[:min(end, len(raw)-1)]), '"'))
	return strings.ToLower(strings.Join(strings.Fields(text), ""))
}

// Audio refuses a field that asks for audio, or holds it.
func Audio(param string) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` asks for audio, which this service does not offer.")
}

// Stored refuses a field that refers to something stored at a provider.
func Stored(param string) error {
	return fault.At(fault.InvalidRequest, param,
		"`{param}` refers to something stored at a provider, which this service does not offer. Send the content itself.")
}

// FindStored looks for a reference to something stored at the provider inside
// a hosted tool or the like, at any depth, and returns its path.
func FindStored(value []byte, depth int) string {
	const deepest = 32 // deeper than any part or tool that a provider knows
	if depth > deepest {
		return ""
	}
	switch {
	case len(value) > 0 && value[0] == '{':
		for name, inner := range rawjson.Members(value) {
			switch {
			case IsStoredName(name) && rawjson.NonNull(inner) != nil:
				return "." + string(name)
			case inner[0] == '{' || inner[0] == '[':
				if path := FindStored(inner, depth+1); path != "" {
					return "." + string(name) + path
				}
			}
		}
	case len(value) > 0 && value[0] == '[':
		for i, inner := range rawjson.Elements(value) {
			if inner[0] == '{' || inner[0] == '[' {
				if path := FindStored(inner, depth+1); path != "" {
					return fmt.Sprintf("[%d]%s", i, path)
				}
			}
		}
	}
	return ""
}

// Shortened returns a value's text for a message.
func Shortened(raw []byte) string {
	const most = 64
	return strings.ToValidUTF8(string(raw[:min(len(raw), most)]), "")
}
