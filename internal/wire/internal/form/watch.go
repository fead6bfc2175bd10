package form

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/rawjson"
)

// keyRules selects the keys and strings of interest below the top level of a body of any form.
var keyRules = rawjson.KeyRules{
	Prefix: wire.SealPrefix, FilePrefix: fileAddress, FileKeys: fileKeys, Spelling: checkedName, Match: isMatch, Free: isFree,
}

// checkedNames are the members below the top level read by checks or with an effect at the
// provider. A server that ignores case would accept another spelling, unseen by the checks.
const checkedNames = " action allowed_callers allowed_tools arguments audio audio_url cache_control caching call_id container " +
	"container_id content custom data detail document edits effort enable enabled environment execution external_web_access file " +
	"file_data file_id file_ids file_uri file_url filename filters format function function_call id image image_url images " +
	"include_usage input input_audio input_image input_schema item_reference json_schema max_tokens max_uses media_type " +
	"memory_limit mime_type mode model name network_policy output parameters partial_images prompt_cache_breakpoint quality " +
	"refusal result role schema search_context_size server_label server_url size skill_id source strict text thinking " +
	"tool_call_id tool_calls tool_use_id tools ttl type uri url video video_url "

// checkedName returns the checked name equal to name when case is ignored. It is only called for
// names with capitals.
func checkedName(name []byte) (string, bool) {
	for known := range strings.FieldsSeq(checkedNames) {
		if strings.EqualFold(known, string(name)) {
			return known, true
		}
	}
	return field.InnerSpelling(string(name))
}

// isFree reports whether the client chooses the names inside a member: the schemas and arguments of
// its tools, its labels, and the citations of earlier answers, which no provider follows.
func isFree(name []byte, depth int) bool {
	switch string(name) {
	case "parameters", "input_schema", "output_schema", "schema", "arguments", "input_examples", "metadata", "client_metadata", "annotations",
		"env": // of a shell call
		return true
	case "input":
		return depth > 0 // at the top level it is the conversation of the responses form
	}
	return false
}

// isMatch reports whether a member refers to an object stored at a provider, holds an address, or
// marks a position of the prompt for the provider's cache.
func isMatch(name []byte) bool {
	return isAddressName(name) || IsStoredName(name) || cacheMarkOf(name) != nil
}

// IsStoredName reports whether a member with this name refers to an object stored at a provider.
// Case and separators are ignored, because the vendors' spelling varies.
func IsStoredName(name []byte) bool {
	if len(name) < len("fileid") || len(name) > 32 || !endsAsStored(name) {
		return false
	}
	var buffer [32]byte
	word := buffer[:0]
	for _, c := range name {
		switch {
		case c == '_' || c == '-':
		case 'A' <= c && c <= 'Z':
			word = append(word, c+'a'-'A')
		default:
			word = append(word, c)
		}
	}
	switch string(word) {
	case "fileid", "fileids", "vectorstoreid", "vectorstoreids", "containerid", "skillid", // OpenAI
		"attachments", "toolresources", "assistantid", "threadid", "comparisonresponseid",
		"cachedcontent",                                                      // Gemini
		"knowledgeid", "knowledgeids", "knowledgebaseid", "knowledgebaseids", // Zhipu and others
		"libraryid", "libraryids", // Mistral
		"collectionid", "collectionids", // xAI
		"contextid", "fileworkspaceid", "previousinteractionid", // Ark, DashScope, Gemini
		"agentid", "datasetid":
		return true
	}
	return false
}

// endsAsStored tests the last two bytes of a name for IsStoredName. Nearly every key of a body
// fails here.
func endsAsStored(name []byte) bool {
	before := name[len(name)-2]
	if before == '_' || before == '-' {
		return true
	}
	switch before |= 0x20; name[len(name)-1] | 0x20 {
	case 'd': // id
		return before == 'i'
	case 's': // ids, attachments, tool_resources
		return before == 'd' || before == 't' || before == 'e'
	case 't': // cached_content
		return before == 'n' && len(name) >= len("cachedcontent")
	case '_' | 0x20, '-':
		return true
	}
	return false
}

// isAddressName reports whether a member with this name holds an address, or may hold one instead
// of an object.
func isAddressName(name []byte) bool {
	if len(name) < len("url") {
		return false
	}
	switch name[len(name)-1] | 0x20 {
	case 'l', 'i':
		before, end := name[:len(name)-3], name[len(name)-3:]
		return (bytes.EqualFold(end, []byte("url")) || bytes.EqualFold(end, []byte("uri"))) &&
			(len(before) == 0 || end[0] == 'U' || before[len(before)-1] == '_' || before[len(before)-1] == '-')
	}
	return isContentName(name)
}

// isContentName reports whether a member with this name holds an address or the content itself.
func isContentName(name []byte) bool {
	switch string(name) {
	case "image", "images", "video", "videos", "file", "file_data":
		return true
	}
	return false
}

// CheckReferences rejects every reference to an object stored at a provider, and every address
// except web and inline ones. It also reads the cache times of the prompt, and finds images and
// files in fields outside the input, which no other check counts.
func (r *Request) CheckReferences() error {
	r.LongCache, r.cacheTimes = false, nil
	if r.Doc.Raw("previous_input_messages") != nil {
		r.Bound.Unbounded = true
	}
	for at, value := range r.Doc.Matches {
		name := r.Doc.NameAt(at)
		if mark := cacheMarkOf(name); mark != nil {
			r.readCacheMark(mark, at, value)
			continue
		}
		if err := CheckReference(r.Doc, at, value); err != nil {
			return err
		}
		if !r.Bound.Unbounded && hasAddress(value) && !r.isInput(at) {
			r.Bound.Unbounded = true
		}
	}
	return nil
}

// isInput reports whether an offset of the body is in a field with content counted by other checks.
func (r *Request) isInput(at int) bool {
	i, _ := slices.BinarySearchFunc(r.Doc.Members, at, func(m rawjson.Member, at int) int { return m.To - at })
	switch string(r.Doc.Members[i].Name) {
	case "messages", "input", "system", "contents", "systemInstruction":
		return true
	}
	return false
}

// hasAddress reports whether a value is or lists an address.
func hasAddress(value []byte) bool {
	for range addresses(value) {
		return true
	}
	return false
}

// CheckReference rejects the value of the key at an offset if it refers to an object stored at a
// provider, or holds an address other than a web or an inline one.
func CheckReference(d *rawjson.RequestBody, at int, value []byte) error {
	name := d.NameAt(at)
	if IsStoredName(name) {
		return StoredError(d.PathTo(at))
	}
	if !isAddressName(name) {
		return nil
	}
	for text := range addresses(value) {
		if !isWebAddress(text) && !isInline(name, text) {
			return badAddress(d.PathTo(at))
		}
	}
	return nil
}

// CheckAddresses calls check for every web address in the body, and returns its first error with
// the path of the address.
func (r *Request) CheckAddresses(check func(address string) error) error {
	for at, value := range r.Doc.Matches {
		if err := CheckAddress(r.Doc, at, value, check); err != nil {
			return err
		}
	}
	return nil
}

// CheckAddress is CheckAddresses for the value of the key at an offset.
func CheckAddress(d *rawjson.RequestBody, at int, value []byte, check func(address string) error) error {
	for text := range addresses(value) {
		if !isWebAddress(text) {
			continue
		}
		if err := check(rawjson.Unquote(text)); err != nil {
			return fault.At(fault.InvalidRequest, d.PathTo(at), "`{param}` cannot be used. %s", err.Error())
		}
	}
	return nil
}

// addresses yields a nonempty JSON string, or each nonempty string of a list.
func addresses(value []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if rawjson.IsText(value) && len(value) > 2 {
			yield(value)
			return
		}
		for _, element := range rawjson.Elements(value) {
			if rawjson.IsText(element) && len(element) > 2 && !yield(element) {
				return
			}
		}
	}
}

// isWebAddress reports whether a JSON string starts with https: or http:.
func isWebAddress(text []byte) bool {
	scheme, ok := schemeOf(text)
	return ok && (scheme == "https" || scheme == "http")
}

// schemeOf returns the text before the first colon of a JSON string in lower case, and false if its
// beginning has no colon.
func schemeOf(text []byte) (string, bool) {
	scheme, _, found := strings.Cut(textHead(text), ":")
	return scheme, found
}

// isInline reports whether a JSON string holds the content itself: a data: address, or base64,
// without a colon, in a member not only for addresses.
func isInline(name, text []byte) bool {
	if scheme, found := schemeOf(text); found {
		return scheme == "data"
	}
	return isContentName(name)
}

func badAddress(param string) error {
	return fault.At(fault.InvalidRequest, param,
		"`{param}` must be an address that begins with https:// or http://, or a data: address with the content. "+
			"Other addresses mean something stored at a provider or on its machines, which this service does not offer.")
}
