// Package contract owns the OpenAPI 3.1 documents of the gateway, one for callers and one for operators, and
// their reference pages. The documents are YAML written by hand. They share some parts.
//
// Invariants: the documents do not depend on the process, so they are built once. Tests compare them with the
// routes, the table of errors and the answers of running gateways (internal/gatewaytest/contract,
// internal/archtest).
package contract

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/goccy/go-yaml"
)

//go:embed callers/*.yaml operators/*.yaml shared/*.yaml
var parts embed.FS

// OpenAPI is one of the two documents.
type OpenAPI struct {
	top  table
	json []byte
}

// Callers returns the document of the API: /v1, /native, /v1beta, media and health. explain returns the text
// about an error code, or an empty string for an unknown code. Callers returns an error if an embedded part is
// invalid or has an unknown code.
func Callers(explain func(code string) string) (*OpenAPI, error) {
	return read(explain, "callers/api.yaml", "callers/chat.yaml", "callers/native.yaml", "callers/gemini.yaml",
		"callers/media.yaml", "callers/kinds.yaml",
		"callers/account.yaml", "shared/process.yaml", "shared/job.yaml", "shared/usage.yaml", "shared/errors.yaml", "callers/native_errors.yaml",
		"callers/gemini_errors.yaml")
}

// Operators returns the document of the operator API: /admin/v1, metrics and health. explain and the error are
// as for Callers.
func Operators(explain func(code string) string) (*OpenAPI, error) {
	return read(explain, "operators/admin.yaml", "operators/accounts.yaml", "operators/keys.yaml", "operators/mails.yaml",
		"operators/topups.yaml", "operators/invoices.yaml", "operators/secrets.yaml", "operators/requests.yaml",
		"operators/announcements.yaml", "operators/gateway.yaml",
		"shared/process.yaml", "shared/job.yaml", "shared/usage.yaml", "shared/errors.yaml")
}

// read joins the named parts to one document, in their order.
func read(explain func(code string) string, names ...string) (*OpenAPI, error) {
	d := &OpenAPI{}
	for _, name := range names {
		raw, err := withAnchors(name)
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
		if d.top, err = d.top.join(top.without("x-anchors").without("x-shared")); err != nil {
			return nil, fmt.Errorf("join %s: %w", name, err)
		}
	}
	if err := d.top.explainCodes(explain); err != nil {
		return nil, err
	}
	d.json = append(encode(d.top), '\n')
	return d, nil
}

// withAnchors returns a part after the YAML anchors of its folder, if the folder has any.
func withAnchors(name string) ([]byte, error) {
	anchors, err := parts.ReadFile(path.Dir(name) + "/anchors.yaml")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	part, err := parts.ReadFile(name)
	return append(anchors, part...), err
}

// JSON returns the document. The caller must not change it.
func (d *OpenAPI) JSON() []byte { return d.json }
