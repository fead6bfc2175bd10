package api

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/sound"
	"tollgate/internal/upload"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/kind/registry"
	"tollgate/internal/wire/rawjson"
)

// kindRoutes returns the routes of the kinds in package wire/kind.
func (s *server) kindRoutes() (routes []httpapi.Route) {
	for _, k := range registry.All() {
		for _, endpoint := range k.Endpoints {
			routes = append(routes, httpapi.Route{Pattern: "POST " + endpoint.Path, Handle: s.modelCall(func(x *apiRequest) error {
				c := kindCall{server: s, apiRequest: x, kind: k, endpoint: endpoint}
				defer c.close()
				return s.answer(x, func() (func() error, error) {
					r, err := c.check()
					return func() error { return s.Calls.Serve(x.Request.Context(), x, r) }, err
				})
			})})
		}
	}
	return routes
}

// kindCall is one request for a model of a kind.
type kindCall struct {
	server *server
	*apiRequest
	kind     *kind.Definition
	endpoint kind.CallPath
	form     *upload.MultipartForm // nil unless the request is multipart

	isRead  bool // body and readErr are set; check may run twice, but a body can be read only once
	body    []byte
	readErr error
}

// close removes the uploaded file.
func (c *kindCall) close() {
	if c.form != nil {
		c.form.Close()
	}
}

// check validates body, model and fields in the order of ARCHITECTURE.md, Order of checks.
func (c *kindCall) check() (call.KindRequest, error) {
	var none call.KindRequest
	if !c.isRead {
		c.isRead = true
		c.body, c.readErr = c.read()
	}
	if c.readErr != nil {
		return none, c.readErr
	}
	request, err := c.kind.Open(c.body)
	if err != nil {
		return none, err
	}
	if c.model, err = request.Model(); err != nil {
		return none, err
	}
	snapshot := c.server.Catalog.Current()
	model, err := c.chooseModel(snapshot)
	if err != nil {
		return none, err
	}
	if request, ok := request.(kind.FileRequest); ok {
		request.SetFile(uploadOf(c.form.File))
	}
	if err := request.Check(model); err != nil {
		return none, err
	}
	if err := request.CheckAddresses(c.server.Guard.CheckContent); err != nil {
		return none, err
	}
	return call.KindRequest{
		Kind: c.kind, LinePath: c.endpoint.LinePath, Admission: c.admission(model), Snapshot: snapshot, Model: model, Body: request,
		ModelID: c.model, Span: c.Span,
	}, nil
}

// chooseModel returns the requested model, or the first one if the request names none.
func (c *kindCall) chooseModel(snapshot *catalog.Snapshot) (_ *catalog.Model, err error) {
	if c.model == "" {
		if c.model, err = c.firstOpen(snapshot); err != nil {
			return nil, err
		}
	}
	return c.choose(snapshot, wire.FormChat, c.serves)
}

// firstOpen returns the id of the catalog's first open model for the endpoint within the key's allowlist.
// If the allowlist has none, firstOpen returns the first open model, for choose to reject.
func (c *kindCall) firstOpen(snapshot *catalog.Snapshot) (string, error) {
	first := ""
	for _, m := range snapshot.Models() {
		if !c.serves(m) || m.State != catalog.StateOpen || c.hides(snapshot, m.ID) {
			continue
		}
		if c.caller.AllowsModel(m.ID) {
			return m.ID, nil
		}
		first = cmp.Or(first, m.ID)
	}
	if first == "" {
		return "", fault.At(fault.ModelNotFound, "model", "No model of this endpoint is open. GET /v1/models lists the models.")
	}
	return first, nil
}

// serves reports whether the endpoint serves a model.
func (c *kindCall) serves(m *catalog.Model) bool {
	return string(m.Kind) == c.kind.Name && c.endpoint.Offers(m)
}

// read returns the JSON of the body, or of the text fields of a form.
func (c *kindCall) read() ([]byte, error) {
	if !c.kind.Multipart {
		return c.Body(c.server.MaxBody)
	}
	form, err := upload.Read(c.Request.Header.Get("Content-Type"), c.Request.Body,
		upload.Options{FileField: kind.FileField, MaxFile: c.maxFile})
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		c.Header().Set("Connection", "close") // the rest of the body is not read
		return nil, err
	case err != nil:
		return nil, c.Interrupted(fault.InvalidRequest, "form", err)
	}
	c.form = form
	return fieldsOf(form), nil
}

// maxFile returns the maximum size in bytes of a file for the form's model. If the form has no model
// yet, it returns the maximum of all models.
func (c *kindCall) maxFile(form *upload.MultipartForm) (most int64, err error) {
	snapshot := c.server.Catalog.Current()
	if name := form.Value("model"); name != "" {
		c.model = name
		model, err := c.chooseModel(snapshot)
		if err != nil {
			return 0, err
		}
		return c.kind.MaxFile(model), nil
	}
	for _, m := range snapshot.Models() {
		if c.serves(m) {
			most = max(most, c.kind.MaxFile(m))
		}
	}
	return most, nil
}

// fieldsOf returns the text fields of a form as a JSON object. Fields whose names end in [] are lists.
func fieldsOf(form *upload.MultipartForm) []byte {
	out := []byte{'{'}
	for i, field := range form.Fields {
		isList := strings.HasSuffix(field.Name, "[]")
		same := func(f upload.TextField) bool { return f.Name == field.Name }
		if isList && slices.ContainsFunc(form.Fields[:i], same) {
			continue // already in the list of the first one
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, rawjson.Quote(field.Name)...), ':')
		if !isList {
			out = append(out, rawjson.Quote(field.Value)...)
			continue
		}
		separator := byte('[')
		for _, f := range form.Fields[i:] {
			if same(f) {
				out = append(append(out, separator), rawjson.Quote(f.Value)...)
				separator = ','
			}
		}
		out = append(out, ']')
	}
	return append(out, '}')
}

// uploadOf returns the file of a form with the length of its sound.
func uploadOf(f *upload.StoredFile) *kind.Upload {
	length, _ := sound.Duration(f, f.Size)
	return &kind.Upload{Name: f.Name, ContentType: f.Type, Bytes: f, Size: f.Size, Duration: length}
}
