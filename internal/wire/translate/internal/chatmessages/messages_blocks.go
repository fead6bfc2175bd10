package chatmessages

import (
	"bytes"
	"fmt"
	"strings"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// block is a content block or a tool of the messages form.
type block struct {
	json []byte // without the closing brace
	mark breakpoint
}

// breakpoint is where the provider's prompt cache ends a part, and how long it
// keeps it.
type breakpoint int

const (
	noBreakpoint breakpoint = iota
	forMinutes              // the form's default, five minutes
	forAnHour
)

// markOf reads the breakpoint of a part or tool, in either vendor's words.
func markOf(object []byte) breakpoint {
	if cache := rawjson.Field(object, "cache_control"); len(cache) > 0 && cache[0] == '{' {
		if rawjson.Unquote(rawjson.Field(cache, "ttl")) == "1h" {
			return forAnHour
		}
		return forMinutes
	}
	if cache := rawjson.Field(object, "prompt_cache_breakpoint"); len(cache) > 0 && cache[0] == '{' {
		if rawjson.Unquote(rawjson.Field(cache, "ttl")) == "12h" {
			return forAnHour
		}
		return forMinutes
	}
	return noBreakpoint
}

// breakpoints writes blocks with their breakpoints: of too many only the last,
// which cover the most; and none that is longer than one before it, which the
// form refuses.
type breakpoints struct {
	skip  int // how many are still left out
	short bool
}

// append appends blocks as a list.
func (b *breakpoints) append(out []byte, lists ...[]block) []byte {
	sep := byte('[')
	for _, list := range lists {
		for _, block := range list {
			out = append(append(out, sep), block.json...)
			out = append(b.appendMark(out, block.mark), '}')
			sep = ','
		}
	}
	if sep == '[' {
		out = append(out, sep)
	}
	return append(out, ']')
}

func (b *breakpoints) appendMark(out []byte, mark breakpoint) []byte {
	switch {
	case mark == noBreakpoint:
		return out
	case b.skip > 0:
		b.skip--
		return out
	case mark == forAnHour && !b.short:
		return append(out, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`...)
	}
	b.short = true
	return append(out, `,"cache_control":{"type":"ephemeral"}`...)
}

func countMarks(list []block) (n int) {
	for _, b := range list {
		if b.mark != noBreakpoint {
			n++
		}
	}
	return n
}

// addBlock adds a block. One without anything in it is left out, and its
// breakpoint goes to the block before it.
func addBlock(list []block, b block) []block {
	switch {
	case b.json != nil:
		return append(list, b)
	case len(list) > 0:
		last := &list[len(list)-1]
		last.mark = max(last.mark, b.mark)
	}
	return list
}

// textBlock makes a block of a JSON string; an empty one of a text that is
// blank, which the form refuses.
func textBlock(text []byte) block {
	if piece.IsBlank(text) {
		return block{}
	}
	return block{json: rawjson.AppendMember([]byte(`{"type":"text"`), "text", text)}
}

// blocksOf reads the content of a chat message, a string or parts. Only what a
// user or a tool says may hold more than text.
func blocksOf(content []byte, textOnly bool, at string) (list []block, err error) {
	if len(content) == 0 || content[0] != '[' {
		return addBlock(nil, textBlock(content)), nil
	}
	for i, part := range rawjson.Elements(content) {
		at := fmt.Sprintf("%s[%d]", at, i)
		b, err := partBlock(part, at)
		if err == nil && textOnly && b.json != nil && !bytes.HasPrefix(b.json, []byte(`{"type":"text"`)) {
			err = unsupported(at+".type", "`{param}`: this model takes images and files from the user only.")
		}
		if err != nil {
			return nil, err
		}
		b.mark = markOf(part)
		list = addBlock(list, b)
	}
	return list, nil
}

// partBlock makes a block of a part, without its breakpoint.
func partBlock(part []byte, at string) (block, error) {
	switch kind := rawjson.Unquote(rawjson.Field(part, "type")); kind {
	case "text", "input_text", "output_text":
		text := rawjson.Field(part, "text")
		if text != nil && !rawjson.IsText(text) {
			return block{}, unsupported(at+".text", "`{param}` must be a string.")
		}
		return textBlock(text), nil
	case "refusal":
		return textBlock(rawjson.Field(part, "refusal")), nil
	case "thinking", "redacted_thinking", "reasoning": // bound to who thought it
		return block{}, nil
	case "image_url", "input_image":
		address := rawjson.Field(part, "image_url")
		at += ".image_url"
		if len(address) > 0 && address[0] == '{' {
			address = rawjson.Field(address, "url")
			at += ".url"
		}
		return imageBlock(address, at)
	case "file":
		return fileBlock(rawjson.Field(part, "file"), at+".file")
	default:
		return block{}, unsupported(at+".type", "`{param}`: this model takes text, images and PDF files, not `%s`.", form.Shorten([]byte(kind)))
	}
}

// imageBlock makes a block of an image's address, which may hold the image.
func imageBlock(address []byte, at string) (block, error) {
	kind, data, inline := splitData(address)
	switch {
	case inline:
		if kind == "image/jpg" {
			kind = "image/jpeg"
		}
		switch kind {
		case "image/jpeg", "image/png", "image/gif", "image/webp":
			return sourceBlock("image", kind, data), nil
		}
		return block{}, unsupported(at, "`{param}`: this model takes images of type JPEG, PNG, GIF and WebP, in base64.")
	case piece.HasScheme(address):
		source := rawjson.AppendMember([]byte(`{"type":"url"`), "url", address)
		return block{json: append(rawjson.AppendMember([]byte(`{"type":"image"`), "source", source), '}')}, nil
	}
	return block{}, unsupported(at, "`{param}` must be an https or a data address.")
}

// sourceBlock makes an image or a document of data in base64, which is the
// inside of a JSON string.
func sourceBlock(kind, media string, data []byte) block {
	out := make([]byte, 0, len(data)+128)
	out = fmt.Appendf(out, `{"type":"%s","source":{"type":"base64","media_type":"%s","data":"`, kind, media)
	return block{json: rawjson.Put(out, "", data, `"}`)}
}

// splitData takes a data address in base64 apart: its type in lower case, and
// its data as it stands. The data may have escapes (`\/`).
func splitData(address []byte) (kind string, data []byte, ok bool) {
	const longest = 512 // of what stands before the data, in any escapes
	in := rawjson.Contents(address)
	comma := bytes.IndexByte(in[:min(len(in), longest)], ',')
	if comma < 0 {
		return "", nil, false
	}
	head, ok := strings.CutPrefix(strings.ToLower(rawjson.Unquote(append(bytes.Clone(address[:comma+1]), '"'))), "data:")
	if !ok {
		return "", nil, false
	}
	kind, options, _ := strings.Cut(head, ";")
	if options != "base64" && !strings.HasSuffix(options, ";base64") {
		return "", nil, true
	}
	return strings.TrimSpace(kind), in[comma+1:], true
}

// fileBlock makes a document of a file, which has to be a PDF in the request.
func fileBlock(file []byte, at string) (block, error) {
	kind, data, ok := splitData(rawjson.Field(file, "file_data"))
	if !ok || kind != "application/pdf" {
		return block{}, unsupported(at+".file_data", "`{param}` must be a PDF as a data address: `data:application/pdf;base64,…`.")
	}
	b := sourceBlock("document", kind, data)
	if name := rawjson.Field(file, "filename"); rawjson.IsText(name) && !piece.IsBlank(name) {
		b.json = rawjson.AppendMember(b.json, "title", name)
	}
	return b, nil
}
