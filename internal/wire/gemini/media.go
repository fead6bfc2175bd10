package gemini

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"path"
	"slices"
	"strings"

	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// The alternatives to an unsupported file in error messages.
const (
	anImage = "image, such as data:image/png;base64,…"
	aFile   = "file, such as data:application/pdf;base64,…"
)

// media returns the part of an image or a file. For a model that fetches images, the part has the image's
// address. For any other model, the gateway fetches the image.
func (e *encoder) media(p *conversation.Part) ([]byte, error) {
	m := p.Media
	switch {
	case p.Kind == conversation.File:
		return inlineFile(m.Address, m.At, aFile)
	case isInline(m.Address):
	case !e.beforeGemini3:
		return imageByAddress(rawjson.Unquote(m.Address), m.At)
	case e.target.Images != nil:
		return e.fetchedImage(rawjson.Unquote(m.Address), m.At)
	}
	return inlineFile(m.Address, m.At, anImage)
}

// fetchedImage returns the part of an image fetched from its address, or an empty part if it is not
// fetched yet.
func (e *encoder) fetchedImage(address, param string) ([]byte, error) {
	got, known := e.images[address]
	switch {
	case !known:
		if !slices.Contains(e.missing, address) {
			e.missing = append(e.missing, address)
		}
		return []byte("{}"), nil
	case got.Err != nil:
		return nil, conversation.FetchError(param, got.Err)
	}
	out := make([]byte, 0, base64.StdEncoding.EncodedLen(len(got.Data))+64)
	out = rawjson.Put(out, `{"inlineData":{"mimeType":"`, got.MIME, `","data":"`)
	return append(base64.StdEncoding.AppendEncode(out, got.Data), `"}}`...), nil
}

// scheme starts a data address.
const scheme = "data:"

// isInline reports whether an address, a JSON string, is a data address.
func isInline(address []byte) bool {
	head := rawjson.Unquote(append(bytes.Clone(address[:min(len(address)-1, 6*len(scheme))]), '"'))
	return len(head) >= len(scheme) && strings.EqualFold(head[:len(scheme)], scheme)
}

// imageByAddress returns the part of an image to be fetched by the model. Addresses of objects
// stored at the provider and of videos are rejected.
func imageByAddress(address, param string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return nil, conversation.Unsupported(param, "`{param}` must be an http(s) address, or the data address of the %s", anImage)
	}
	host := "." + strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for _, no := range []string{".generativelanguage.googleapis.com", ".youtube.com", ".youtu.be"} {
		if strings.HasSuffix(host, no) {
			return nil, conversation.Unsupported(param, "`{param}` is not the address of an image. Send the data address of the %s", anImage)
		}
	}
	out := rawjson.Put(nil, `{"fileData":{"mimeType":"`, imageType(u.Path), `","fileUri":`)
	return rawjson.Put(out, "", rawjson.Quote(address), "}}"), nil
}

// imageType returns the media type of an image by its address. The form requires a media type, but the
// provider detects the type itself.
func imageType(name string) string {
	switch ending := strings.ToLower(path.Ext(name)); ending {
	case ".png", ".webp", ".gif", ".heic", ".heif", ".avif", ".bmp":
		return "image/" + ending[1:]
	}
	return "image/jpeg"
}

// inlineFile returns the part of an image or a file, given its data address, a JSON string. Audio,
// which has no price here, is rejected under any type.
func inlineFile(address []byte, param, what string) ([]byte, error) {
	if !rawjson.IsText(address) {
		return nil, conversation.Unsupported(param, "`{param}` must be the data address of the %s", what)
	}
	raw := address
	head, data, found := bytes.Cut(raw[1:len(raw)-1], []byte(","))
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = rawjson.Quote(rawjson.Unquote(raw))
		head, data, found = bytes.Cut(raw[1:len(raw)-1], []byte(","))
	}
	const longest = 256 // of the text before the data
	scheme, kind, _ := strings.Cut(string(head[:min(len(head), longest)]), ":")
	kind, encoded := strings.CutSuffix(strings.ToLower(kind), ";base64")
	kind, _, _ = strings.Cut(kind, ";") // parameters
	switch {
	case !strings.EqualFold(scheme, "data"):
		return nil, conversation.Unsupported(param,
			"`{param}` is an address, and this model takes files inline only. Send the data address of the %s", what)
	case !found || !encoded || kind == "" || len(data) == 0:
		return nil, conversation.Unsupported(param, "`{param}` must be base64 with its type: the data address of the %s", what)
	case strings.HasPrefix(strings.TrimSpace(kind), "audio") || strings.Contains(kind, "ogg"):
		return nil, form.AudioError(param)
	}
	out := rawjson.Put(nil, `{"inlineData":{"mimeType":"`, kind, `","data":"`)
	return rawjson.Put(out, "", data, `"}}`), nil
}
