package form

import (
	"encoding/json"
	"testing"

	"tollgate/internal/wire/rawjson"
)

// FuzzCorrectMedia checks that a valid body stays valid, and is right the second time.
func FuzzCorrectMedia(f *testing.F) {
	f.Add(`{"source":{"type":"base64","media_type":"image/jpg","data":"/9j/"}}`)
	f.Add(`{"source":{"data":"R0lGODlh","media_type" : "image/png" ,"type":"base64"}}`)
	f.Add(`{"image_url":{"url":"data:image/jpg;base64,iVBORw0KGgo"},"media_type"`)
	f.Add(`{"file_data": "data:\u0041;base64,JVBERi0xLjcK","x":["\"data:",":\"data:;base64,\""]}`)
	f.Add(`{"inlineData":{"mimeType":"IMAGE/JPG","data":"/9j/"},` +
		`"x":{"inlineData" : {"data":"AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYx","mimeType":""}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		wrongTypes([]byte(body)) // does not panic
		doc, err := OpenDocument([]byte(body))
		if err != nil {
			return
		}
		once := CorrectMedia(rawjson.Pieces{doc.Body}, doc).Bytes()
		if !json.Valid(once) {
			t.Fatalf("%s: got %s, want JSON", body, once)
		}
		if twice := rawjson.Replace(once, wrongTypes(once)); string(twice) != string(once) {
			t.Errorf("%s: got %s, want %s again", body, twice, once)
		}
	})
}
