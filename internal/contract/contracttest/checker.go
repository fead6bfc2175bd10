// Package contracttest owns the check of a running gateway's answers against its contracts. The status and the
// media type must be documented. The body, each event of a stream, and the headers must match their schemas.
//
// Invariants: the gateway's objects may have only members of their schema, although clients must accept others.
// The schema must allow each accepted request.
package contracttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tollgate/internal/contract"
	"tollgate/internal/fault"
)

// Answer is a request and the gateway's answer.
type Answer struct {
	Method, Path string
	Sent         []byte // body of the request, nil if unknown
	Status       int
	Header       http.Header
	Body         []byte
	Cut          bool // the body is incomplete
}

// Checker checks answers against both contracts. It is safe for concurrent use.
type Checker struct {
	operations []*operation

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	seen     map[string]bool // operations with a checked success, such as "POST /v1/responses"
}

// operation is a method of a path in a contract.
type operation struct {
	document     string // URL of the contract in Checker.compiler
	method, path string
	matches      *regexp.Regexp
	definition   map[string]any
	top          map[string]any // the contract
}

// New reads the contracts. It returns an error if one is invalid.
func New() (*Checker, error) {
	c := &Checker{compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	for name, read := range map[string]func(func(string) string) (*contract.OpenAPI, error){
		"callers": contract.Callers, "operators": contract.Operators,
	} {
		d, err := read(fault.Explain)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.JSON()))
		if err != nil {
			return nil, err
		}
		top := doc.(map[string]any)
		closeObjects(top["components"])
		closeObjects(top["paths"])
		resource := "https://tollgate.invalid/" + name
		if err := c.compiler.AddResource(resource, doc); err != nil {
			return nil, err
		}
		c.add(resource, top)
	}
	return c, nil
}

// closeObjects forbids members outside a schema, unless the schema has additionalProperties.
func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, open := v["additionalProperties"]; !open && v["properties"] != nil && v["type"] != nil {
			v["additionalProperties"] = false
		}
		for _, value := range v {
			closeObjects(value)
		}
	case []any:
		for _, item := range v {
			closeObjects(item)
		}
	}
}

var segment = regexp.MustCompile(`\\\{[a-z]+\\\}`)

func (c *Checker) add(resource string, top map[string]any) {
	for at, methods := range top["paths"].(map[string]any) {
		one := "[^/]+"
		if strings.Contains(at, "/models/{id}") {
			one = ".+"
		}
		pattern := regexp.MustCompile("^" + segment.ReplaceAllString(regexp.QuoteMeta(at), one) + "$")
		for method, definition := range methods.(map[string]any) {
			c.operations = append(c.operations, &operation{resource, strings.ToUpper(method), at, pattern, definition.(map[string]any), top})
		}
	}
}

// Operations returns the operations of both contracts as `METHOD /path`, sorted.
func (c *Checker) Operations() (all []string) {
	for _, o := range c.operations {
		all = append(all, o.method+" "+o.path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// MissingOperations returns the operations for which Check has not seen a success.
func (c *Checker) MissingOperations() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.Operations() {
		if !c.seen[o] {
			all = append(all, o)
		}
	}
	return all
}

// Check returns an error if an answer differs from the contracts, or if they do not allow an accepted request.
// It ignores paths outside the APIs.
func (c *Checker) Check(a Answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isAPI(a.Path) {
		return nil
	}
	o, known := c.find(a.Method, a.Path)
	if o == nil {
		return c.unknown(a, known)
	}
	if err := c.response(o, a); err != nil {
		return fmt.Errorf("%s %s: %w", o.method, o.path, err)
	}
	if a.Status >= 300 {
		return nil
	}
	c.seen[o.method+" "+o.path] = true
	if err := c.request(o, a.Sent); err != nil {
		return fmt.Errorf("%s %s was accepted: %w", o.method, o.path, err)
	}
	return nil
}

// isAPI reports whether a path is part of an API.
func isAPI(at string) bool {
	for _, prefix := range []string{"/v1/", "/v2/", "/native/", "/v1beta/models", "/admin/v1/", "/media/", "/healthz", "/readyz", "/metrics"} {
		if strings.HasPrefix(at, prefix) && path.Clean(at) == at {
			return true
		}
	}
	return false
}

// find returns the operation of a request, or nil. known reports whether the path is documented, with any
// method.
func (c *Checker) find(method, at string) (found *operation, known bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	isVerb := false // the path ends in a verb, as in {id}:countTokens, so the verb is not part of an id
	for _, o := range c.operations {
		hasVerb := strings.Contains(o.path, "}:")
		if !o.matches.MatchString(at) || isVerb && !hasVerb {
			continue
		}
		if known = true; hasVerb && !isVerb {
			isVerb, found = true, nil
		}
		// A path with fewer parameters wins.
		if o.method == method && (found == nil || strings.Count(o.path, "{") < strings.Count(found.path, "{")) {
			found = o
		}
	}
	return found, known
}

// unknown checks the answer to an undocumented request. known reports whether the path has other methods.
func (c *Checker) unknown(a Answer, known bool) error {
	switch {
	case known && a.Status == http.StatusMethodNotAllowed, a.Status == http.StatusNotFound, a.Status == http.StatusUnauthorized:
	case a.Status == http.StatusNoContent && a.Method == http.MethodOptions:
		return nil
	case slices.Contains([]int{400, 417, 431, 501, 503, 505}, a.Status):
	default:
		return fmt.Errorf("%s %s is in no contract and was answered %d", a.Method, a.Path, a.Status)
	}
	schema := "#/components/schemas/Error"
	switch {
	case fault.IsNative(a.Path):
		schema = "#/components/schemas/NativeError"
	case fault.IsGoogle(a.Path):
		schema = "#/components/schemas/GoogleError"
	}
	if a.Method == http.MethodHead {
		return nil
	}
	return c.validate("https://tollgate.invalid/callers"+schema, a.Body)
}

// response checks an answer of an operation.
func (c *Checker) response(o *operation, a Answer) error {
	status := strconv.Itoa(a.Status)
	responses := o.definition["responses"].(map[string]any)
	if responses[status] == nil {
		status = status[:1] + "XX"
	}
	if responses[status] == nil {
		return fmt.Errorf("the status %d is not documented", a.Status)
	}
	at, response := o.resolve("/paths/"+escape(o.path)+"/"+strings.ToLower(o.method)+"/responses/"+status, responses[status])
	if err := c.headers(o, response, a.Header); err != nil {
		return err
	}
	if a.Method == http.MethodHead || len(a.Body) == 0 {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	contents, _ := response["content"].(map[string]any)
	for name, content := range contents {
		if matched, _ := path.Match(name, kind); !matched { // the patterns in the contracts are valid
			continue
		}
		media, place := content.(map[string]any), o.document+"#"+at+"/content/"+escape(name)
		switch {
		case media["x-event-schema"] != nil:
			return c.stream(place+"/x-event-schema", a)
		case a.Cut || kind != "application/json":
			return nil
		}
		if err := c.validate(place+"/schema", a.Body); err != nil {
			return err
		}
		return checkCode(response, a)
	}
	return fmt.Errorf("a body of %q with status %d is not documented", kind, a.Status)
}

// checkCode checks that the contract lists the error code of an answer. It ignores the codes of providers.
func checkCode(response map[string]any, a Answer) error {
	var b struct{ Error struct{ Code string } }
	if json.Unmarshal(a.Body, &b) != nil || b.Error.Code == "" || a.Status < 400 {
		return nil
	}
	codes, hasCodes := response["x-codes"].([]any)
	row, isOurs := fault.Lookup(fault.Code(b.Error.Code))
	if hasCodes && isOurs && row.Status == a.Status && !slices.Contains(codes, any(b.Error.Code)) {
		return fmt.Errorf("the code %s is not among those documented for status %d", b.Error.Code, a.Status)
	}
	return nil
}

// resolve follows a reference in the contract. It returns the place and the value of the object.
func (o *operation) resolve(at string, v any) (string, map[string]any) {
	m := v.(map[string]any)
	ref, ok := m["$ref"].(string)
	if !ok {
		return at, m
	}
	at = strings.TrimPrefix(ref, "#")
	m = o.top
	for name := range strings.SplitSeq(at[1:], "/") {
		m = m[name].(map[string]any)
	}
	return at, m
}

// headers checks the documented headers of an answer. Only a header Request-Id must be present.
func (c *Checker) headers(o *operation, response map[string]any, got http.Header) error {
	documented, _ := response["headers"].(map[string]any)
	for name, header := range documented {
		_, definition := o.resolve("", header)
		value := got.Get(name)
		if value == "" {
			if strings.HasSuffix(name, "Request-Id") {
				return fmt.Errorf("there is no %s", name)
			}
			continue
		}
		schema := definition["schema"].(map[string]any)
		if want, fixed := schema["const"]; fixed && want != value {
			return fmt.Errorf("%s is %q, not %q", name, value, want)
		}
		if _, err := strconv.Atoi(value); schema["type"] == "integer" && err != nil {
			return fmt.Errorf("%s is %q, no integer", name, value)
		}
	}
	return nil
}

// stream checks each event of a stream, but not an incomplete last event.
func (c *Checker) stream(schema string, a Answer) error {
	events := strings.Split(string(a.Body), "\n\n")
	if a.Cut {
		events = events[:len(events)-1]
	}
	for _, event := range events {
		for line := range strings.Lines(event) {
			data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:")
			if data = strings.TrimSpace(data); !ok || data == "" || data == "[DONE]" {
				continue
			}
			if err := c.validate(schema, []byte(data)); err != nil {
				return err
			}
		}
	}
	return nil
}

// request checks that the schema allows an accepted request.
func (c *Checker) request(o *operation, sent []byte) error {
	body, _ := o.definition["requestBody"].(map[string]any)
	content, _ := body["content"].(map[string]any)
	if content["application/json"] == nil || !json.Valid(sent) {
		return nil // schemas do not cover other media types
	}
	return c.validate(o.document+"#/paths/"+escape(o.path)+"/"+strings.ToLower(o.method)+"/requestBody/content/application~1json/schema", sent)
}

// validate checks JSON against the schema at a place.
func (c *Checker) validate(at string, raw []byte) error {
	schema, err := c.compiler.Compile(at)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%w\nin %s", err, raw[:min(len(raw), 2000)])
	}
	return nil
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
