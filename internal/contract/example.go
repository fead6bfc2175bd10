package contract

import (
	"bytes"
	"encoding/json"
	"strings"
)

// formatExample formats an example for people. It returns an empty string for nil.
func formatExample(example any) string {
	switch v := example.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	}
	raw := encode(example)
	if len(raw) <= longestLine {
		return string(raw)
	}
	var out bytes.Buffer
	_ = json.Indent(&out, raw, "", "  ") // cannot fail, because encode returns JSON
	return out.String()
}

// longestLine is the maximum length of an example on one line, in bytes.
const longestLine = 88

// command returns a shell command to try an operation. The command uses the variables BASE, the gateway's
// address, and KEY, an API key.
func (d *OpenAPI) command(path, method string, definition table) string {
	query := ""
	for _, p := range definition.list("parameters") {
		p := d.resolve(p)
		example := p.text("example")
		switch {
		case example == "":
		case p.text("in") == "path":
			path = strings.ReplaceAll(path, "{"+p.text("name")+"}", example)
		case p.text("in") == "query":
			query += "&" + p.text("name") + "=" + example
		}
	}
	if query != "" {
		query = "?" + query[1:]
	}
	out := "curl"
	if method != "get" && (method != "post" || definition.get("requestBody") == nil) {
		out += " -X " + strings.ToUpper(method)
	}
	out += ` "$BASE` + path + query + `"`
	if schemes := definition.list("security"); len(schemes) > 0 {
		first, _ := schemes[0].(table)
		if first.get("key") != nil {
			out += ` -H "x-api-key: $KEY"`
		} else {
			out += ` -H "Authorization: Bearer $KEY"`
		}
	}
	if body := definition.get("requestBody"); body != nil {
		example := d.resolve(body).get("content", "application/json", "example")
		if example == nil {
			return strings.Replace(out, "curl", "curl -X "+strings.ToUpper(method), 1)
		}
		out += " \\\n  -H \"Content-Type: application/json\" -d '" + strings.ReplaceAll(formatExample(example), "'", `'\''`) + "'"
	}
	return out
}
