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

// FindAudio looks for audio in a content part, at any depth. It returns the path of the audio, and
// false if not found.
func FindAudio(value []byte, depth int) (at string, found bool) {
	const deepest = 32 // deeper than any known part
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

// audioEndings are the extensions of audio files.
var audioEndings = []string{
	".mp3", ".wav", ".wave", ".m4a", ".aac", ".ogg", ".oga", ".opus", ".flac", ".aif", ".aiff", ".amr", ".wma", ".weba",
	".mka", ".pcm", ".pcm16",
}

// ogg is a media type of audio without the word.
const ogg = "application/ogg"

// holdsAudio reports whether a member of a part holds audio, according to its name, its type, the
// head of its data address, or its file name. Names are compared without case and underscores,
// because the vendors' spelling varies.
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

// isAudioName reports whether a file name or an address has the extension of an audio file.
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

// textHead returns the beginning of a JSON string in lower case without escapes and white space,
// long enough for the type of a data address.
func textHead(raw []byte) string {
	const most = 96 // bytes, with escapes
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

// AudioError rejects a field with audio.
func AudioError(param string) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` asks for audio, which this service does not offer.")
}

// StoredError rejects a field that refers to an object stored at a provider.
func StoredError(param string) error {
	return fault.At(fault.InvalidRequest, param,
		"`{param}` refers to something stored at a provider, which this service does not offer. Send the content itself.")
}

// FindStored looks for a reference to an object stored at a provider inside a hosted tool or the
// like, at any depth, and returns its path, or "".
func FindStored(value []byte, depth int) string {
	const deepest = 32 // deeper than any known part or tool
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

// Shorten returns the beginning of a value for a message.
func Shorten(raw []byte) string {
	const most = 64
	return strings.ToValidUTF8(string(raw[:min(len(raw), most)]), "")
}
