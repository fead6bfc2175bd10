package gemini

import (
	"bytes"
	"slices"
	"strings"

	"tollgate/internal/wire/rawjson"
)

// The members of a request's objects that the gateway knows. Google rejects any other member, and so
// does the gateway, because a member that no check reads may have a price.
var (
	fields = names(`model contents systemInstruction tools toolConfig generationConfig safetySettings serviceTier store cachedContent labels
		continuationToken`)
	contentMembers  = names("role parts")
	partMembers     = names("text thought thoughtSignature videoMetadata mediaResolution partMetadata " + strings.Join(dataMembers, " "))
	inlineMembers   = names("mimeType data displayName")
	fileMembers     = names("mimeType fileUri displayName")
	callMembers     = names("id name args")
	resultMembers   = names("id name response parts willContinue scheduling")
	functionMembers = names("name description parameters parametersJsonSchema response responseJsonSchema behavior")
	choiceMembers   = names("functionCallingConfig retrievalConfig includeServerSideToolInvocations")
	callingMembers  = names("mode allowedFunctionNames streamFunctionCallArguments")
	thinkingMembers = names("includeThoughts thinkingBudget thinkingLevel")
	configMembers   = names(`temperature topP topK seed candidateCount maxOutputTokens stopSequences presencePenalty frequencyPenalty
		responseLogprobs logprobs responseMimeType responseSchema responseJsonSchema responseModalities mediaResolution thinkingConfig
		imageConfig enableEnhancedCivicAnswers audioTimestamp`)
)

// dataMembers are the members of a part with its content. A part has one of them.
var dataMembers = names(`text inlineData fileData functionCall functionResponse executableCode codeExecutionResult
	toolCall toolResponse`)

func names(words string) []string { return strings.Fields(words) }

// snakeNames maps the snake_case names of all members that the gateway reads to their camelCase names.
var snakeNames = func() map[string]string {
	known := map[string]string{}
	more := names(`generateContentRequest functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext googleMaps
		enterpriseWebSearch fileSearch computerUse mcpServers aspectRatio imageSize`)
	for _, name := range slices.Concat(fields, contentMembers, partMembers, inlineMembers, fileMembers, callMembers, resultMembers,
		functionMembers,
		choiceMembers, callingMembers, thinkingMembers, configMembers, more) {
		if snake := snakeCase(name); snake != name {
			known[snake] = name
		}
	}
	return known
}()

// snakeCase returns the snake_case spelling of a camelCase name.
func snakeCase(name string) string {
	var out []byte
	for _, c := range []byte(name) {
		if 'A' <= c && c <= 'Z' {
			out = append(out, '_', c+'a'-'A')
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// isFree reports whether the client chooses the names inside a member: the schemas and arguments of its
// functions, and its labels.
func isFree(name []byte, _ int) bool {
	switch string(name) {
	case "args", "response", "parameters", "parametersJsonSchema", "parameters_json_schema", "responseSchema", "response_schema",
		"responseJsonSchema", "response_json_schema", "labels", "partMetadata", "part_metadata":
		return true
	}
	return false
}

// camelCase returns a checked body with all known names in camelCase, and whether any name changed.
func camelCase(body []byte) (out []byte, changed bool) {
	if bytes.IndexByte(body, '_') < 0 {
		return body, false
	}
	out = appendCamelCase(make([]byte, 0, len(body)), bytes.TrimSpace(body), &changed)
	return out, changed
}

func appendCamelCase(dst, value []byte, changed *bool) []byte {
	switch value[0] {
	case '{':
		dst = append(dst, '{')
		separator := ""
		for name, inner := range rawjson.Members(value) {
			if camel, ok := snakeNames[string(name)]; ok {
				name, *changed = []byte(camel), true
			}
			dst = append(append(append(dst, separator...), rawjson.Quote(string(name))...), ':')
			if isFree(name, 0) {
				dst = append(dst, inner...)
			} else {
				dst = appendCamelCase(dst, inner, changed)
			}
			separator = ","
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, inner := range rawjson.Elements(value) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCamelCase(dst, inner, changed)
		}
		return append(dst, ']')
	}
	return append(dst, value...)
}
