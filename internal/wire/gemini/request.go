package gemini

import (
	"iter"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Request is a generateContent body accepted by Open, with the parameters of its URL. Check sets its
// parameters.
type Request struct {
	form.Request
	method Method
}

// Method holds the parameters of a request's URL.
type Method struct {
	// Model is the id of the model in the path.
	Model string
	// Stream is set for streamGenerateContent. Array is set if its answer is one JSON array instead of
	// server-sent events (`alt=sse`).
	Stream, Array bool
}

// Open checks the JSON of a generateContent body, as completions.Open does. Names in snake_case, which
// Google's parser accepts too, become camelCase. The request retains body, which must not be changed.
func Open(body []byte, m Method) (*Request, error) {
	doc, err := open(body)
	if err != nil {
		return nil, err
	}
	r := &Request{Request: form.Request{Doc: doc}, method: m}
	r.N, r.Stream = 1, m.Stream
	return r, nil
}

// ArrayStream reports whether the answer is a stream in one JSON array.
func (r *Request) ArrayStream() bool { return r.method.Stream && r.method.Array }

// OpenCount is Open for the body of countTokens: a generateContent body, or an object with one in
// `generateContentRequest`.
func OpenCount(body []byte, model string) (*Request, error) {
	doc, err := open(body)
	if err != nil {
		return nil, err
	}
	if inner := doc.Raw("generateContentRequest"); inner != nil {
		return Open(inner, Method{Model: model})
	}
	r := &Request{Request: form.Request{Doc: doc}, method: Method{Model: model}}
	r.N = 1
	return r, nil
}

func open(body []byte) (*rawjson.RequestBody, error) {
	doc, err := form.OpenFree(body, sealPrefix, isFree)
	if err != nil {
		return nil, err
	}
	if renamed, changed := camelCase(body); changed {
		return form.OpenFree(renamed, sealPrefix, isFree)
	}
	return doc, nil
}

// Model returns the id of the model in the path.
func (r *Request) Model() (string, error) {
	if r.method.Model == "" {
		return "", fault.At(fault.NotFound, "model", "Name the model in the path, as in /v1beta/models/{model}:generateContent.")
	}
	return r.method.Model, nil
}

// HasTools implements wire.Request.
func (r *Request) HasTools() bool {
	for range list(r.Doc.Raw("tools")) {
		return true
	}
	return false
}

// Prompt implements wire.Request. It counts the texts, calls, results and tools.
func (r *Request) Prompt(c *wire.Counter, perImage int64) int64 {
	var text form.Output
	messages := 0
	addContent := func(content []byte) {
		messages++
		for _, part := range list(rawjson.Field(content, "parts")) {
			for name, value := range rawjson.Members(part) {
				switch string(name) {
				case "text":
					text.AddAll(value, 0)
				case "functionCall", "functionResponse", "executableCode", "codeExecutionResult":
					text.Add(value)
				}
			}
		}
	}
	if system := r.Doc.Raw("systemInstruction"); system != nil {
		addContent(system)
	}
	for _, content := range list(r.Doc.Raw("contents")) {
		addContent(content)
	}
	if tools := r.Doc.Raw("tools"); tools != nil {
		text.Add(tools)
	}
	for _, name := range []string{"responseSchema", "responseJsonSchema"} {
		if schema := r.config(name); schema != nil {
			text.Add(schema)
		}
	}
	return r.PromptTokens(c, &text, messages, perImage)
}

// config returns a member of generationConfig, or nil.
func (r *Request) config(name string) []byte {
	return rawjson.Field(r.Doc.Raw("generationConfig"), name)
}

// list yields the elements of an array, or a single object in place of an array of one, as Google's
// parser does.
func list(value []byte) iter.Seq2[int, []byte] {
	if len(value) > 0 && value[0] == '{' {
		return func(yield func(int, []byte) bool) { yield(0, value) }
	}
	return rawjson.Elements(value)
}
