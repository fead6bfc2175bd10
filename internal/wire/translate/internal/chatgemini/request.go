package chatgemini

import (
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
)

// Body returns the request as one for Gemini's generateContent; the model
// stands in the address there, not in the body. Call Check first. What that
// form cannot do is refused with invalid_request and the path of the field;
// what only shades an answer (`logit_bias`, `verbosity`, `user`) is left out.
func (r chatOnGemini) Body(t wire.Translation) (rawjson.Pieces, error) {
	if err := r.refuseForGemini(); err != nil {
		return nil, err
	}
	conversation, err := r.conversation(t)
	if err != nil {
		return nil, err
	}
	tools, choice, err := r.geminiTools()
	if err != nil {
		return nil, err
	}
	config, err := r.geminiConfig(t)
	if err != nil {
		return nil, err
	}
	var body geminiFields
	if conversation.system != nil {
		body.add("systemInstruction", `{"parts":[{"text":"`, string(conversation.system), `"}]}`)
	}
	body.add("contents", "[", string(conversation.turns), "]")
	if tools != nil {
		body.add("tools", `[{"functionDeclarations":[`, string(tools), "]}]")
	}
	if choice != nil {
		body.add("toolConfig", `{"functionCallingConfig":`, string(choice), "}")
	}
	if len(config) > 0 {
		body.add("generationConfig", string(config.object()))
	}
	if r.ServiceTier != "" {
		body.add("serviceTier", string(rawjson.Quote(r.ServiceTier)))
	}
	return rawjson.Pieces{body.object()}, nil
}

// conversation puts the messages into the form. Images by address that somebody
// fetches for the line are fetched all at once, once nothing else is wrong with the
// messages, which are read again then.
func (r chatOnGemini) conversation(t wire.Translation) (*geminiConversation, error) {
	c := &geminiConversation{older: generationOf(t.Model).before3(), fetches: t.Images != nil}
	if err := c.addAll(r.Doc.Raw("messages")); err != nil || len(c.wanted) == 0 {
		return c, err
	}
	images := make(map[string]wire.FetchedImage, len(c.wanted))
	for i, image := range t.Images(c.wanted) {
		images[c.wanted[i]] = image
	}
	c = &geminiConversation{older: c.older, fetches: true, images: images}
	return c, c.addAll(r.Doc.Raw("messages"))
}

// addAll adds all messages.
func (c *geminiConversation) addAll(messages []byte) error {
	for i, message := range rawjson.Elements(messages) {
		if err := c.add(message, i); err != nil {
			return err
		}
	}
	c.end()
	return nil
}

// geminiFields are the members of an object that is being written.
type geminiFields []byte

// add adds a member whose value is made of the pieces.
func (f *geminiFields) add(name string, value ...string) {
	if len(*f) > 0 {
		*f = append(*f, ',')
	}
	*f = rawjson.Put(*f, `"`, name, `":`)
	for _, piece := range value {
		*f = append(*f, piece...)
	}
}

// object returns the object.
func (f geminiFields) object() []byte {
	out := append(make([]byte, 0, len(f)+2), '{')
	return rawjson.Put(out, "", f, "}")
}

// cannotGemini refuses a field that this form has nothing for.
func cannotGemini(param, format string, args ...any) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` "+format, args...)
}

// refuseForGemini refuses what changes an answer or its price and has no
// counterpart.
func (r chatOnGemini) refuseForGemini() error {
	if len(r.Tools) > 0 {
		return cannotGemini(r.Tools[0].Param,
			"asks for a hosted tool, which this model does not offer here. Leave it out, or use functions of your own.")
	}
	for _, o := range r.Options {
		if o.Param == "modalities" || o.Option != "" {
			continue // it has a counterpart and a price, or marks the prompt for a cache
		}
		if o.Param != "service_tier" {
			return cannotGemini(o.Param, "is not offered for this model. Leave it out.")
		}
		if o.Name != "flex" && o.Name != "priority" {
			return cannotGemini(o.Param, "must be auto, default, flex or priority for this model.")
		}
	}
	return nil
}

// maxGeminiStops is how many stop sequences the form takes.
const maxGeminiStops = 5

// geminiConfig makes the generationConfig.
func (r chatOnGemini) geminiConfig(t wire.Translation) (config geminiFields, err error) {
	if limit := r.Limit; limit > 0 {
		config.add("maxOutputTokens", strconv.FormatInt(limit, 10))
	} else if t.Limit > 0 {
		config.add("maxOutputTokens", strconv.FormatInt(t.Limit, 10))
	}
	for _, same := range [...]struct{ chat, gemini string }{
		{"temperature", "temperature"}, {"top_p", "topP"},
		{"presence_penalty", "presencePenalty"}, {"frequency_penalty", "frequencyPenalty"},
		{"logprobs", "responseLogprobs"}, {"top_logprobs", "logprobs"},
	} {
		if value := r.Doc.Raw(same.chat); value != nil {
			config.add(same.gemini, string(value))
		}
	}
	if seed := r.Doc.Raw("seed"); seed != nil {
		config.add("seed", geminiSeed(seed))
	}
	if r.N > 1 {
		config.add("candidateCount", strconv.FormatInt(r.N, 10))
	}
	for _, step := range []func(*geminiFields) error{r.geminiStops, r.geminiFormat, r.geminiModalities} {
		if err := step(&config); err != nil {
			return nil, err
		}
	}
	thinking, err := r.geminiThinking(t)
	if err != nil {
		return nil, err
	}
	if len(thinking) > 0 {
		config.add("thinkingConfig", string(thinking.object()))
	}
	return config, nil
}

// geminiSeed folds a seed into the 32 bits that the form has: equal seeds stay
// equal.
func geminiSeed(raw []byte) string {
	n, ok := rawjson.Integer(raw)
	if !ok || n == int64(int32(n)) {
		return string(raw)
	}
	return strconv.FormatInt(n&0x7fffffff, 10)
}

// geminiStops adds the stop sequences.
func (r chatOnGemini) geminiStops(config *geminiFields) error {
	raw := r.Doc.Raw("stop")
	if raw == nil {
		return nil
	}
	var stops []string
	if rawjson.IsText(raw) {
		stops = append(stops, string(raw))
	}
	for _, stop := range rawjson.Elements(raw) {
		if rawjson.NonNull(stop) != nil {
			stops = append(stops, string(stop))
		}
	}
	if len(stops) > maxGeminiStops {
		return cannotGemini("stop", "may hold at most %d sequences for this model.", maxGeminiStops)
	}
	for i := 0; i < len(stops); {
		if stops[i] == `""` { // never stops anything, and is refused there
			stops = append(stops[:i], stops[i+1:]...)
		} else {
			i++
		}
	}
	if len(stops) > 0 {
		config.add("stopSequences", "[", strings.Join(stops, ","), "]")
	}
	return nil
}

// geminiFormat adds the form of the answer. What the form ignores of a schema is
// told in its descriptions.
func (r chatOnGemini) geminiFormat(config *geminiFields) error {
	raw := r.Doc.Raw("response_format")
	if raw == nil {
		return nil
	}
	switch kind := rawjson.Unquote(rawjson.Field(raw, "type")); kind {
	case "text":
	case "json_object":
		config.add("responseMimeType", `"application/json"`)
	case "json_schema":
		config.add("responseMimeType", `"application/json"`)
		if asked := rawjson.Field(rawjson.Field(raw, "json_schema"), "schema"); asked != nil {
			adapted, err := schema.Gemini().For(asked, "response_format.json_schema.schema")
			if err != nil {
				return err
			}
			config.add("responseJsonSchema", string(adapted))
		}
	default:
		return cannotGemini("response_format.type", "must be text, json_object or json_schema for this model.")
	}
	return nil
}

// geminiModalities adds what the answer may hold: text alone unless images are
// asked for, since models that make them do so unasked, at another price.
func (r chatOnGemini) geminiModalities(config *geminiFields) error {
	var text, image bool
	for i, modality := range rawjson.Elements(r.Doc.Raw("modalities")) {
		switch rawjson.Unquote(modality) {
		case "text":
			text = true
		case "image":
			image = true
		default:
			return cannotGemini(fmt.Sprintf("modalities[%d]", i), "must be text or image for this model.")
		}
	}
	if !image {
		config.add("responseModalities", `["TEXT"]`)
		return nil
	}
	if text {
		config.add("responseModalities", `["TEXT","IMAGE"]`)
	} else {
		config.add("responseModalities", `["IMAGE"]`)
	}
	var images geminiFields
	for _, same := range [...]struct{ chat, gemini string }{{"aspect_ratio", "aspectRatio"}, {"image_size", "imageSize"}} {
		if value := rawjson.Field(r.Doc.Raw("image_config"), same.chat); value != nil {
			images.add(same.gemini, string(value))
		}
	}
	if len(images) > 0 {
		config.add("imageConfig", string(images.object()))
	}
	return nil
}
