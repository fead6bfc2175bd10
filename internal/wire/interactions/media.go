package interactions

import (
	"encoding/base64"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// fetchImages fetches the images at web addresses. The reference takes addresses of Google's own
// storage and does not promise others.
func (e *encoder) fetchImages(turns []conversation.Turn) {
	if e.target.Images == nil {
		return
	}
	var addresses []string
	e.images = map[string]wire.FetchedImage{}
	var collect func(parts []conversation.Part)
	collect = func(parts []conversation.Part) {
		for i := range parts {
			p := &parts[i]
			if p.Result != nil {
				collect(p.Result.Parts)
			}
			if p.Kind != conversation.Image || !conversation.HasScheme(p.Media.Address) {
				continue
			}
			address := rawjson.Unquote(p.Media.Address)
			if _, known := e.images[address]; !known {
				e.images[address] = wire.FetchedImage{}
				addresses = append(addresses, address)
			}
		}
	}
	for i := range turns {
		collect(turns[i].Parts)
	}
	if addresses == nil {
		return
	}
	for i, image := range e.target.Images(addresses) {
		e.images[addresses[i]] = image
	}
}

// media returns the content of an image or a document.
func (e *encoder) media(p *conversation.Part) ([]byte, error) {
	m := p.Media
	if image, ok := e.images[rawjson.Unquote(m.Address)]; ok && p.Kind == conversation.Image {
		if image.Err != nil {
			return nil, conversation.FetchError(m.At, image.Err)
		}
		data := base64.StdEncoding.AppendEncode(nil, image.Data)
		return content("image", image.MIME, data), nil
	}
	kind, data, ok := conversation.SplitData(m.Address)
	switch {
	case !ok && p.Kind == conversation.File && conversation.HasScheme(m.Address):
		return nil, conversation.NotFetched(m.At)
	case !ok:
		return nil, conversation.Unsupported(m.At, "`{param}` must be a data address, such as data:image/png;base64,… for this model.")
	case kind == "" || len(data) == 0:
		return nil, conversation.Unsupported(m.At, "`{param}` must be base64 with its type, such as data:image/png;base64,… for this model.")
	case strings.HasPrefix(kind, "image/"):
		return content("image", kind, data), nil
	case kind == "application/pdf" || kind == "text/csv":
		return content("document", kind, data), nil
	case strings.HasPrefix(kind, "audio") || strings.Contains(kind, "ogg"):
		return nil, form.AudioError(m.At)
	case strings.HasPrefix(kind, "text/"):
		text, err := base64.StdEncoding.DecodeString(rawjson.Unquote(conversation.Quoted(data)))
		if err == nil {
			return appendText(nil, conversation.AppendEscaped(nil, text))[1:], nil
		}
	}
	return nil, conversation.Unsupported(m.At, "`{param}` must be an image, a PDF, CSV or a text in base64 for this model.")
}

// content returns a content with data in base64.
func content(kind, mime string, data []byte) []byte {
	out := rawjson.Put(make([]byte, 0, len(data)+64), `{"type":"`, kind, `","mime_type":`)
	return rawjson.Put(append(out, rawjson.Quote(mime)...), `,"data":"`, data, `"}`)
}
