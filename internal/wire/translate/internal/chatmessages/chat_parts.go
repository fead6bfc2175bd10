package chatmessages

import (
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// chatPartsOf returns the parts in the chat form.
func chatPartsOf(blocks []piece.Part) []chatPart {
	parts := make([]chatPart, len(blocks))
	for i, p := range blocks {
		switch {
		case p.Image != nil:
			parts[i].json = rawjson.Put(nil, `{"type":"image_url","image_url":{"url":`, p.Image, "}}")
		case p.File != nil:
			json := rawjson.Put(nil, `{"type":"file","file":{"filename":`, p.Name, `,"file_data":`)
			parts[i].json = rawjson.Put(json, "", p.File, "}}")
		default:
			parts[i].text = p.Text
		}
	}
	return parts
}
