package gemini

import (
	"strings"

	"tollgate/internal/wire/rawjson"
)

// maxSchemaDepth is the nesting limit of a schema. Deeper parts allow everything.
const maxSchemaDepth = 100

// appendJSONSchema appends one of Google's schemas, a dialect of OpenAPI 3.0, as a JSON schema: types in
// small letters, `nullable` as the type null, and numbers in place of Google's texts of numbers.
func appendJSONSchema(dst, schema []byte, depth int) []byte {
	if len(schema) == 0 || schema[0] != '{' || depth > maxSchemaDepth {
		return append(dst, "{}"...)
	}
	nullable := string(rawjson.Field(schema, "nullable")) == "true"
	dst = append(dst, '{')
	separator := ""
	add := func(name []byte) {
		dst = append(append(append(dst, separator...), rawjson.Quote(string(name))...), ':')
		separator = ","
	}
	for name, value := range rawjson.Members(schema) {
		if rawjson.NonNull(value) == nil && string(name) != "default" {
			continue
		}
		switch string(name) {
		case "nullable", "example", "propertyOrdering", "property_ordering":
		case "type":
			kind := strings.ToLower(rawjson.Unquote(value))
			if kind == "" || kind == "type_unspecified" {
				continue
			}
			add(name)
			dst = appendType(dst, kind, nullable)
		case "enum":
			add(name)
			dst = appendEnum(dst, value, nullable)
		case "properties", "$defs", "defs":
			if string(name) == "defs" {
				name = []byte("$defs")
			}
			add(name)
			dst = appendSchemas(dst, value, depth)
		case "anyOf", "any_of", "prefixItems", "prefix_items":
			add(camelName(name))
			dst = append(dst, '[')
			for i, inner := range rawjson.Elements(value) {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = appendJSONSchema(dst, inner, depth+1)
			}
			dst = append(dst, ']')
		case "items":
			add(name)
			dst = appendJSONSchema(dst, value, depth+1)
		case "additionalProperties", "additional_properties":
			add(camelName(name))
			if value[0] == '{' {
				dst = appendJSONSchema(dst, value, depth+1)
			} else {
				dst = append(dst, value...)
			}
		case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties",
			"min_items", "max_items", "min_length", "max_length", "min_properties", "max_properties":
			number := []byte(strings.Trim(string(value), `"`))
			if _, ok := rawjson.Integer(number); ok {
				add(camelName(name))
				dst = append(dst, number...)
			}
		case "ref":
			add([]byte("$ref"))
			dst = append(dst, value...)
		default:
			add(name)
			dst = append(dst, value...)
		}
	}
	return append(dst, '}')
}

// appendType appends a type, with null beside it if nullable is set.
func appendType(dst []byte, kind string, nullable bool) []byte {
	quoted := rawjson.Quote(kind)
	if !nullable || kind == "null" {
		return append(dst, quoted...)
	}
	return rawjson.Put(dst, "[", quoted, `,"null"]`)
}

// appendEnum appends the values of an enum, with null at the end if nullable is set.
func appendEnum(dst, values []byte, nullable bool) []byte {
	if !nullable || values[0] != '[' {
		return append(dst, values...)
	}
	separator := ","
	if strings.TrimSpace(string(values[1:len(values)-1])) == "" {
		separator = ""
	}
	return append(append(append(dst, values[:len(values)-1]...), separator...), "null]"...)
}

// appendSchemas appends an object with a schema in each member.
func appendSchemas(dst, schemas []byte, depth int) []byte {
	dst = append(dst, '{')
	separator := ""
	for name, inner := range rawjson.Members(schemas) {
		dst = append(append(append(dst, separator...), rawjson.Quote(string(name))...), ':')
		dst = appendJSONSchema(dst, inner, depth+1)
		separator = ","
	}
	return append(dst, '}')
}

// camelName returns a name in camelCase.
func camelName(name []byte) []byte {
	words := strings.Split(string(name), "_")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return []byte(strings.Join(words, ""))
}
