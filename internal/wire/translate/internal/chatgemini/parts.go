package chatgemini

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// What is asked for in the place of a file that the form does not take.
const (
	anImage = "image, such as data:image/png;base64,…"
	aFile   = "file, such as data:application/pdf;base64,…"
)

// parts appends the parts of a message's content, each behind a comma.
func (c *geminiConversation) parts(dst, content []byte, index int) ([]byte, error) {
	add := func(text []byte) {
		if rawjson.IsText(text) && len(text) > 2 { // empty ones are refused there
			dst = rawjson.Put(dst, `,{"text":`, text, "}")
		}
	}
	if rawjson.IsText(content) {
		add(content)
		return dst, nil
	}
	for k, part := range rawjson.Elements(content) {
		at := func(member string) string { return fmt.Sprintf("messages[%d].content[%d].%s", index, k, member) }
		switch kind := rawjson.Unquote(rawjson.Field(part, "type")); kind {
		case "text", "input_text", "output_text":
			add(rawjson.Field(part, "text"))
		case "refusal":
			add(rawjson.Field(part, kind))
		case "thinking", "redacted_thinking": // without its signature it means nothing
		case "image_url", "input_image":
			image, err := c.image(part, at("image_url"))
			if err != nil {
				return nil, err
			}
			dst = rawjson.Put(dst, ",", image, "")
		case "file":
			inline, err := geminiInline(rawjson.Field(rawjson.Field(part, kind), "file_data"), at("file.file_data"), aFile)
			if err != nil {
				return nil, err
			}
			dst = rawjson.Put(dst, ",", inline, "")
		default:
			return nil, cannotGemini(at("type"), "must be text, image_url or file for this model.")
		}
	}
	return dst, nil
}

// image makes the part of an image. One by address goes as such to a model that
// fetches it, and is fetched here for others.
func (c *geminiConversation) image(part []byte, param string) ([]byte, error) {
	address := rawjson.Field(part, "image_url")
	if address != nil && address[0] == '{' {
		address = rawjson.Field(address, "url")
	}
	switch {
	case !rawjson.IsText(address) || isInline(address):
	case !c.older:
		return geminiAddressed(rawjson.Unquote(address), param)
	case c.fetches:
		return c.fetched(rawjson.Unquote(address), param)
	}
	return geminiInline(address, param, anImage)
}

// fetched makes the part of an image out of what its address holds; an empty one
// where that is not known yet, but wanted.
func (c *geminiConversation) fetched(address, param string) ([]byte, error) {
	got, known := c.images[address]
	var f *fault.Error
	switch {
	case !known:
		if !slices.Contains(c.wanted, address) {
			c.wanted = append(c.wanted, address)
		}
		return []byte("{}"), nil
	case errors.As(got.Err, &f) && f.Code == fault.InvalidRequest:
		return nil, cannotGemini(param, "cannot be used: %s", f.Message())
	case got.Err != nil:
		return nil, got.Err
	}
	out := make([]byte, 0, base64.StdEncoding.EncodedLen(len(got.Data))+64)
	out = rawjson.Put(out, `{"inlineData":{"mimeType":"`, got.MIME, `","data":"`)
	return append(base64.StdEncoding.AppendEncode(out, got.Data), `"}}`...), nil
}

// scheme is how a data address begins.
const scheme = "data:"

// isInline tells whether an address, a JSON string, is one of data.
func isInline(address []byte) bool {
	head := rawjson.Unquote(append(bytes.Clone(address[:min(len(address)-1, 6*len(scheme))]), '"'))
	return len(head) >= len(scheme) && strings.EqualFold(head[:len(scheme)], scheme)
}

// geminiAddressed makes the part of an image that the model fetches. What stands
// for something stored at the provider, or for a video there, is none.
func geminiAddressed(address, param string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return nil, cannotGemini(param, "must be an http(s) address, or the data address of the "+anImage)
	}
	host := "." + strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for _, no := range []string{".generativelanguage.googleapis.com", ".youtube.com", ".youtu.be"} {
		if strings.HasSuffix(host, no) {
			return nil, cannotGemini(param, "is not the address of an image. Send the data address of the "+anImage)
		}
	}
	out := rawjson.Put(nil, `{"fileData":{"mimeType":"`, imageType(u.Path), `","fileUri":`)
	return rawjson.Put(out, "", rawjson.Quote(address), "}}"), nil
}

// imageType is the media type of an image by its address. The form demands one;
// the provider looks at what it fetches.
func imageType(name string) string {
	switch ending := strings.ToLower(path.Ext(name)); ending {
	case ".png", ".webp", ".gif", ".heic", ".heif", ".avif", ".bmp":
		return "image/" + ending[1:]
	}
	return "image/jpeg"
}

// geminiInline makes the part of an image or a file out of its data address, a
// JSON string. Sound has no price in it, whatever it calls itself.
func geminiInline(address []byte, param, what string) ([]byte, error) {
	if !rawjson.IsText(address) {
		return nil, cannotGemini(param, "must be the data address of the "+what)
	}
	raw := address
	head, data, found := bytes.Cut(raw[1:len(raw)-1], []byte(","))
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = rawjson.Quote(rawjson.Unquote(raw))
		head, data, found = bytes.Cut(raw[1:len(raw)-1], []byte(","))
	}
	const longest = 256 // of what stands before the data
	scheme, kind, _ := strings.Cut(string(head[:min(len(head), longest)]), ":")
	kind, encoded := strings.CutSuffix(strings.ToLower(kind), ";base64")
	kind, _, _ = strings.Cut(kind, ";") // parameters
	switch {
	case !strings.EqualFold(scheme, "data"):
		return nil, cannotGemini(param, "is an address, and this model takes files inline only. Send the data address of the "+what)
	case !found || !encoded || kind == "" || len(data) == 0:
		return nil, cannotGemini(param, "must be base64 with its type: the data address of the "+what)
	case strings.HasPrefix(strings.TrimSpace(kind), "audio") || strings.Contains(kind, "ogg"):
		return nil, form.Audio(param)
	}
	out := rawjson.Put(nil, `{"inlineData":{"mimeType":"`, kind, `","data":"`)
	return rawjson.Put(out, "", data, `"}}`), nil
}
