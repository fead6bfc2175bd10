// Package contract owns what the gateway promises on the wire, as OpenAPI 3.1: one
// document for those who call it and one for those who run it, each in parts that
// people write (callers, operators, and shared by both), and the readable
// reference made of them.
//
// Invariants: a document holds no word that depends on a process, so it is made
// once; what stands in it is held against the routes, the table of errors and the
// answers of running gateways by tests (internal/gatewaytest/contract,
// internal/archtest).
package contract

import (
	"embed"
	"fmt"

	"github.com/goccy/go-yaml"
)

//go:embed callers/*.yaml operators/*.yaml shared/*.yaml
var parts embed.FS

// OpenAPI is one of the two contracts.
type OpenAPI struct {
	top  table
	json []byte
}

// Callers returns the contract of the API: /v1, /native, media and health. told says
// when a code of errors is answered and what helps; empty: there is no such code. An
// error is a fault of the build.
func Callers(told func(code string) string) (*OpenAPI, error) {
	return read(told, "callers/api.yaml", "callers/chat.yaml", "callers/native.yaml", "callers/media.yaml", "callers/account.yaml",
		"shared/process.yaml", "shared/job.yaml", "shared/usage.yaml", "shared/errors.yaml", "callers/native_errors.yaml")
}

// Operators returns the contract of the operator API: /admin/v1, metrics and health.
// told is as for Callers.
func Operators(told func(code string) string) (*OpenAPI, error) {
	return read(told, "operators/admin.yaml", "operators/accounts.yaml", "operators/keys.yaml", "operators/requests.yaml",
		"operators/gateway.yaml", "shared/process.yaml", "shared/job.yaml", "shared/usage.yaml", "shared/errors.yaml")
}

// read puts a document together: the members of its parts, in their order.
func read(told func(code string) string, names ...string) (*OpenAPI, error) {
	d := &OpenAPI{}
	for _, name := range names {
		raw, err := parts.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		var part any
		if err := yaml.UnmarshalWithOptions(raw, &part, yaml.UseOrderedMap()); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		top, ok := fromYAML(part).(table)
		if !ok {
			return nil, fmt.Errorf("read %s: %w", name, errNoTable)
		}
		if d.top, err = d.top.join(top.without("x-anchors")); err != nil {
			return nil, fmt.Errorf("join %s: %w", name, err)
		}
	}
	if err := d.top.tellCodes(told); err != nil {
		return nil, err
	}
	d.json = append(encode(d.top), '\n')
	return d, nil
}

// JSON returns the document. Nobody may change it.
func (d *OpenAPI) JSON() []byte { return d.json }
