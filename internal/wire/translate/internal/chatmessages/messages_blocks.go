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

// breakpoint is the lifetime of a prompt cache that ends with a block.
type breakpoint int

const (
	noBreakpoint breakpoint = iota
	forMinutes              // the form's default, five minutes
	forAnHour
)

// markOf reads the breakpoint of a part or tool, Anthropic's or OpenAI's.
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

// breakpoints writes blocks with their breakpoints. If there are too many it keeps the last, which
// cover the most. A lifetime longer than one before it, rejected by the form, is shortened.
type breakpoints struct {
	skip  int // number of breakpoints left to skip
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

// addBlock adds a block. An empty block is left out, and its breakpoint moves to the block before
// it.
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

// textBlock returns the block for a JSON string. It is empty for a blank text, rejected by the
// form.
func textBlock(text []byte) block {
	if piece.IsBlank(text) {
		return block{}
	}
	return block{json: rawjson.AppendMember([]byte(`{"type":"text"`), "text", text)}
}

// blocksOf returns the content of a chat message, a string or parts, as blocks. Only users and
// tools may send more than text.
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

// partBlock returns the block of a part, without its breakpoint.
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
	case "thinking", "redacted_thinking", "reasoning": // only valid for its own model
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

// imageBlock returns the block for an image's address, which may be a data address.
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

// sourceBlock returns an image or a document, given base64 data, the contents of a JSON string.
func sourceBlock(kind, media string, data []byte) block {
	out := make([]byte, 0, len(data)+128)
	out = fmt.Appendf(out, `{"type":"%s","source":{"type":"base64","media_type":"%s","data":"`, kind, media)
	return block{json: rawjson.Put(out, "", data, `"}`)}
}

// splitData splits a base64 data address into its type in lower case and its data, which may have
// escapes (`\/`).
func splitData(address []byte) (kind string, data []byte, ok bool) {
	const longest = 512 // of the text before the data, with any escapes
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

// fileBlock returns a document for a file, which must be an inline PDF.
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
