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

// Body returns the request for Gemini's generateContent; the model is in the URL, not in the body.
// Unsupported values are rejected with invalid_request and the path of the field; fields that only
// adjust an answer (`logit_bias`, `verbosity`, `user`) are left out. Check must be called first.
func (r chatOnGemini) Body(t wire.Translation) (rawjson.Pieces, error) {
	if err := r.checkSupported(); err != nil {
		return nil, err
	}
	conversation, err := r.conversation(t)
	if err != nil {
		return nil, err
	}
	tools, choice, err := r.tools()
	if err != nil {
		return nil, err
	}
	config, err := r.generationConfig(t)
	if err != nil {
		return nil, err
	}
	var body members
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

// conversation translates the messages. If they are valid, it fetches all images by address at
// once, and then translates the messages again.
func (r chatOnGemini) conversation(t wire.Translation) (*conversation, error) {
	c := &conversation{beforeGemini3: generationOf(t.Model).isBefore3(), fetches: t.Images != nil}
	if err := c.addAll(r.Doc.Raw("messages")); err != nil || len(c.missing) == 0 {
		return c, err
	}
	images := make(map[string]wire.FetchedImage, len(c.missing))
	for i, image := range t.Images(c.missing) {
		images[c.missing[i]] = image
	}
	c = &conversation{beforeGemini3: c.beforeGemini3, fetches: true, images: images}
	return c, c.addAll(r.Doc.Raw("messages"))
}

// addAll adds all messages.
func (c *conversation) addAll(messages []byte) error {
	for i, message := range rawjson.Elements(messages) {
		if err := c.add(message, i); err != nil {
			return err
		}
	}
	c.end()
	return nil
}

// members are the members of an object being written.
type members []byte

// add adds a member. Its value is the concatenation of value.
func (f *members) add(name string, value ...string) {
	if len(*f) > 0 {
		*f = append(*f, ',')
	}
	*f = rawjson.Put(*f, `"`, name, `":`)
	for _, piece := range value {
		*f = append(*f, piece...)
	}
}

// object returns the object.
func (f members) object() []byte {
	out := append(make([]byte, 0, len(f)+2), '{')
	return rawjson.Put(out, "", f, "}")
}

// unsupported rejects a field without a counterpart in this form.
func unsupported(param, format string, args ...any) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` "+format, args...)
}

// checkSupported rejects values with an effect on the answer or its price and without a
// counterpart.
func (r chatOnGemini) checkSupported() error {
	if len(r.Tools) > 0 {
		return unsupported(r.Tools[0].Param,
			"asks for a hosted tool, which this model does not offer here. Leave it out, or use functions of your own.")
	}
	for _, o := range r.Options {
		if o.Param == "modalities" || o.Option != "" {
			continue // it has a counterpart and a price, or is a cache mark
		}
		if o.Param != "service_tier" {
			return unsupported(o.Param, "is not offered for this model. Leave it out.")
		}
		if o.Name != "flex" && o.Name != "priority" {
			return unsupported(o.Param, "must be auto, default, flex or priority for this model.")
		}
	}
	return nil
}

// maxStops is the form's limit on stop sequences.
const maxStops = 5

// generationConfig returns the members of the generationConfig.
func (r chatOnGemini) generationConfig(t wire.Translation) (config members, err error) {
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
		config.add("seed", foldSeed(seed))
	}
	if r.N > 1 {
		config.add("candidateCount", strconv.FormatInt(r.N, 10))
	}
	for _, step := range []func(*members) error{r.addStops, r.addFormat, r.addModalities} {
		if err := step(&config); err != nil {
			return nil, err
		}
	}
	thinking, err := r.thinkingConfig(t)
	if err != nil {
		return nil, err
	}
	if len(thinking) > 0 {
		config.add("thinkingConfig", string(thinking.object()))
	}
	return config, nil
}

// foldSeed folds a seed into the form's 32 bits. Equal seeds stay equal.
func foldSeed(raw []byte) string {
	n, ok := rawjson.Integer(raw)
	if !ok || n == int64(int32(n)) {
		return string(raw)
	}
	return strconv.FormatInt(n&0x7fffffff, 10)
}

// addStops adds the stop sequences.
func (r chatOnGemini) addStops(config *members) error {
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
	if len(stops) > maxStops {
		return unsupported("stop", "may hold at most %d sequences for this model.", maxStops)
	}
	for i := 0; i < len(stops); {
		if stops[i] == `""` { // an empty sequence, rejected by the form, has no effect
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

// addFormat adds the format of the answer. Keywords of a schema ignored by the form are moved to
// its descriptions.
func (r chatOnGemini) addFormat(config *members) error {
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
		if schemaJSON := rawjson.Field(rawjson.Field(raw, "json_schema"), "schema"); schemaJSON != nil {
			adapted, err := schema.Gemini().For(schemaJSON, "response_format.json_schema.schema")
			if err != nil {
				return err
			}
			config.add("responseJsonSchema", string(adapted))
		}
	default:
		return unsupported("response_format.type", "must be text, json_object or json_schema for this model.")
	}
	return nil
}

// addModalities adds the kinds of output: only text unless images are requested, because some
// models make images unasked, at another price.
func (r chatOnGemini) addModalities(config *members) error {
	var text, image bool
	for i, modality := range rawjson.Elements(r.Doc.Raw("modalities")) {
		switch rawjson.Unquote(modality) {
		case "text":
			text = true
		case "image":
			image = true
		default:
			return unsupported(fmt.Sprintf("modalities[%d]", i), "must be text or image for this model.")
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
	var images members
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
