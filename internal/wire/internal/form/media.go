package form

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"

	"tollgate/internal/wire/rawjson"
)

// MediaType returns the media type of base64 data, the contents of a JSON string. If the data begins as an
// image or a PDF does, the type is that of the data. Otherwise it is the declared type; the type of an image
// is normalized (lower case, no parameters, image/jpeg instead of image/jpg). Providers reject wrong types.
func MediaType(declared string, data []byte) string {
	const enough = 64 // of base64, for every signature
	head := bytes.ReplaceAll(data[:min(len(data), 2*enough)], []byte(`\`), nil)
	head = head[:min(len(head), enough)&^3]
	var first [enough]byte
	n, _ := base64.StdEncoding.Decode(first[:], head) // the bytes before an error count
	if found := contentType(first[:n]); found != "" {
		return found
	}
	kind, _, _ := strings.Cut(strings.ToLower(declared), ";")
	switch kind = strings.TrimSpace(kind); {
	case kind == "image/jpg" || kind == "image/pjpeg":
		return "image/jpeg"
	case kind == "image/x-png":
		return "image/png"
	case strings.HasPrefix(kind, "image/"):
		return kind
	}
	return declared
}

// isoBrands maps the brands of images in ISO media files to types. The first brand found in a file decides;
// mif1 stands for any image.
var isoBrands = [...][2]string{{"avif", "image/avif"}, {"heic", "image/heic"}, {"heix", "image/heic"}, {"mif1", "image/heif"}}

// contentType returns the type of an image or a PDF by its first bytes, or the empty string.
func contentType(first []byte) string {
	switch found := http.DetectContentType(first); {
	case strings.HasPrefix(found, "image/") && !strings.HasSuffix(found, "icon"), found == "application/pdf":
		return found
	case len(first) < 12 || string(first[4:8]) != "ftyp":
		return ""
	}
	for _, brand := range isoBrands {
		if bytes.Contains(first[8:], []byte(brand[0])) {
			return brand[1]
		}
	}
	return ""
}

// fileAddress is the start of an address with the file itself.
const fileAddress = "data:"

// fileKeys are the members with the type of a file: of the messages and of the Gemini form.
var fileKeys = [2]string{"media_type", "mimeType"}

// CorrectMedia returns a body with the media types of its files corrected (MediaType). d is the client's
// document; if all its types are right, CorrectMedia returns body itself.
func CorrectMedia(body rawjson.Pieces, d *rawjson.RequestBody) rawjson.Pieces {
	if !d.MayHaveFiles() || len(wrongTypes(d.Body)) == 0 {
		return body
	}
	whole := body.Bytes()
	return rawjson.Pieces{rawjson.Replace(whole, wrongTypes(whole))}
}

// inlineData is the member with a file in the Gemini form.
const inlineData = `"inlineData"`

// wrongTypes returns the edits of a body's wrong media types: of data addresses, of base64 sources of the
// messages form and of inline data of the Gemini form.
func wrongTypes(body []byte) (edits []rawjson.Splice) {
	add := func(from, to int, data []byte) {
		declared := strings.ReplaceAll(string(body[from:to]), `\`, "")
		if found := MediaType(declared, data); found != declared {
			edits = append(edits, rawjson.Splice{From: from, To: to, Text: []byte(found)})
		}
	}
	const address, marker = `"` + fileAddress, ";base64,"
	for at := range indexes(body, address) {
		from := at + len(address)
		const longest = 128 // of the type
		if n := bytes.Index(body[from:min(len(body), from+longest)], []byte(marker)); n >= 0 && isAddress(body[:at]) {
			add(from, from+n, body[from+n+len(marker):])
		}
	}
	for name, isFile := range map[string]func(before, after []byte) bool{fileKeys[0]: isSource, fileKeys[1]: isInlineData} {
		name = `"` + name + `"`
		for at := range indexes(body, name) {
			colon := rawjson.SkipSpace(body, at+len(name))
			from := rawjson.SkipSpace(body, min(colon+1, len(body)))
			if from >= len(body) || body[colon] != ':' || body[from] != '"' {
				continue
			}
			to := rawjson.SkipText(body, from)
			if first, data := dataBeside(body, at, to); data != nil && isFile(body[:first], body[to:]) {
				add(from+1, to-1, data)
			}
		}
	}
	return edits
}

// indexes yields the offsets of a text in body.
func indexes(body []byte, text string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for at := 0; ; at++ {
			n := bytes.Index(body[at:], []byte(text))
			if n < 0 || !yield(at+n) {
				return
			}
			at += n
		}
	}
}

// isAddress reports whether before ends with the name of a member for the address of a file.
func isAddress(before []byte) bool {
	before, colon := bytes.CutSuffix(bytes.TrimRight(before, " \t\r\n"), []byte(":"))
	before = bytes.TrimRight(before, " \t\r\n")
	return colon && (bytes.HasSuffix(before, []byte(`"url"`)) || bytes.HasSuffix(before, []byte(`"image_url"`)) ||
		bytes.HasSuffix(before, []byte(`"file_data"`)))
}

// isSource reports whether two members have `"type":"base64"` close before or after them.
func isSource(before, after []byte) bool {
	const close = 48
	word := []byte(`"base64"`)
	return bytes.Contains(before[max(0, len(before)-close):], word) || bytes.Contains(after[:min(len(after), close)], word)
}

// isInlineData reports whether before ends with the name of the member inlineData and the start of its object.
func isInlineData(before, _ []byte) bool {
	before, brace := bytes.CutSuffix(bytes.TrimRight(before, " \t\r\n"), []byte("{"))
	before, colon := bytes.CutSuffix(bytes.TrimRight(before, " \t\r\n"), []byte(":"))
	return brace && colon && bytes.HasSuffix(bytes.TrimRight(before, " \t\r\n"), []byte(inlineData))
}

// dataBeside returns the beginning of the contents of the member `data` directly before or after a member
// at body[from:to], or nil. first is the offset of the first of the two members.
func dataBeside(body []byte, from, to int) (first int, data []byte) {
	const name = `"data"`
	if at := rawjson.SkipSpace(body, to); at < len(body) && body[at] == ',' {
		if at = rawjson.SkipSpace(body, at+1); bytes.HasPrefix(body[at:], []byte(name)) {
			at = rawjson.SkipSpace(body, rawjson.SkipSpace(body, at+len(name))+1)
			return from, body[min(at+1, len(body)):]
		}
	}
	before, comma := bytes.CutSuffix(bytes.TrimRight(body[:from], " \t\r\n"), []byte(","))
	before, quote := bytes.CutSuffix(bytes.TrimRight(before, " \t\r\n"), []byte(`"`))
	start := bytes.LastIndexByte(before, '"')
	if !comma || !quote || start < 0 {
		return 0, nil
	}
	key, colon := bytes.CutSuffix(bytes.TrimRight(before[:start], " \t\r\n"), []byte(":"))
	key, found := bytes.CutSuffix(bytes.TrimRight(key, " \t\r\n"), []byte(name))
	if !colon || !found {
		return 0, nil
	}
	return len(key), before[start+1:]
}
