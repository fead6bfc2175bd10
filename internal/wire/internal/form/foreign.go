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

// maxPartDepth is the depth to which content parts and tools are searched. No known part or tool is
// as deep.
const maxPartDepth = 32

// FindAudio looks for audio in a content part, at any depth. It returns the path of the first
// audio, and whether it found any.
func FindAudio(value []byte, depth int) (at string, found bool) {
	if depth > maxPartDepth || len(value) == 0 {
		return "", false
	}
	switch value[0] {
	case '{':
		for name, inner := range rawjson.Members(value) {
			if isAudioMember(name, inner) {
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

// audioExtensions are the extensions of audio files.
var audioExtensions = []string{
	".mp3", ".wav", ".wave", ".m4a", ".aac", ".ogg", ".oga", ".opus", ".flac", ".aif", ".aiff", ".amr", ".wma", ".weba",
	".mka", ".pcm", ".pcm16",
}

// ogg is the only media type of audio that does not begin with "audio".
const ogg = "application/ogg"

// isAudioMember reports whether a member of a part stands for audio: its name says so, or its value
// is a type of audio, a data address of audio, or the name or address of an audio file. Names are
// compared without case and underscores, because vendors spell them differently.
func isAudioMember(name, value []byte) bool {
	switch {
	case string(name) == "text" || rawjson.NonNull(value) == nil || string(value) == "false":
		return false
	case string(name) == "type" && rawjson.IsPlainName(value) && bytes.IndexByte(value, '\\') < 0:
		return bytes.Contains(value, []byte("audio"))
	}
	plainName := strings.ReplaceAll(strings.ToLower(string(name)), "_", "")
	switch plainName {
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
	case plainName == "type":
		return strings.Contains(head, "audio")
	case plainName == "mediatype" || plainName == "mimetype" || plainName == "contenttype":
		return strings.HasPrefix(head, "audio") || strings.HasPrefix(head, ogg)
	case plainName == "format":
		return strings.HasPrefix(head, "audio") || slices.Contains(audioExtensions, "."+head)
	case plainName == "filename" || strings.HasSuffix(plainName, "url") || strings.HasSuffix(plainName, "uri"):
		return !strings.HasPrefix(head, "data:") && isAudioName(value)
	}
	return false
}

// isAudioName reports whether a file name or an address has the extension of an audio file.
func isAudioName(raw []byte) bool {
	const maxAddress = 8 << 10 // bytes
	if len(raw) > maxAddress {
		return false
	}
	name := rawjson.Unquote(raw)
	if i := strings.IndexAny(name, "?#"); i >= 0 {
		name = name[:i]
	}
	return slices.Contains(audioExtensions, strings.ToLower(path.Ext(strings.TrimSpace(name))))
}

// textHead returns the beginning of a JSON string in lower case, without escapes and white space.
// The beginning is long enough for the media type of a data address.
func textHead(raw []byte) string {
	const maxHead = 96 // bytes, with escapes
	end := 1
	for end < len(raw)-1 && end < maxHead {
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

// HasFile reports whether a value has an image, a video or a file: an address or content in a member
// named after it, or a data: address. Other addresses may be citations.
func HasFile(name, value []byte, depth int) bool {
	if depth > maxPartDepth {
		return true
	}
	for member, inner := range rawjson.Members(value) {
		if string(member) == "url" && isAddressName(name) { // image_url: {url: …}
			member = name
		}
		if HasFile(member, inner, depth+1) {
			return true
		}
	}
	for _, inner := range rawjson.Elements(value) {
		if HasFile(name, inner, depth+1) {
			return true
		}
	}
	if !rawjson.IsText(value) || !isAddressName(name) || len(value) == 2 {
		return false
	}
	plain := string(name) != "url" && string(name) != "uri"
	return plain || strings.HasPrefix(textHead(value), "data:")
}

// AudioError returns the error for a field that asks for audio.
func AudioError(param string) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` asks for audio, which this service does not offer.")
}

// StoredError returns the error for a field that refers to an object stored at a provider.
func StoredError(param string) error {
	return fault.At(fault.InvalidRequest, param,
		"`{param}` refers to something stored at a provider, which this service does not offer. Send the content itself.")
}

// FindStored looks for a reference to an object stored at a provider, for example in a hosted tool,
// at any depth. It returns the path of the first reference, or "".
func FindStored(value []byte, depth int) string {
	if depth > maxPartDepth {
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

// Shorten returns the beginning of a value, for error messages.
func Shorten(raw []byte) string {
	const maxBytes = 64
	return strings.ToValidUTF8(string(raw[:min(len(raw), maxBytes)]), "")
}
