package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"tollgate/internal/app"
)

// fields is a JSON body.
type fields map[string]any

// set adds a member if value is not nil.
func set[T any](body fields, name string, value *T) {
	if value != nil {
		body[name] = value
	}
}

// disabledBody returns the body of the commands disable and enable.
func disabledBody(parsed *kong.Context) fields {
	return fields{"disabled": parsed.Selected().Name == "disable"}
}

// path joins escaped segments to a path below the operator API's base.
func path(parts ...string) string {
	var out strings.Builder
	for _, part := range parts {
		out.WriteByte('/')
		out.WriteString(url.PathEscape(part))
	}
	return out.String()
}

// checkIDs returns an error if an argument in the path is not one segment, because the
// operator API would only report an unknown endpoint.
func checkIDs(path string) error {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		id, err := url.PathUnescape(part)
		if err != nil || id == "" || id == "." || id == ".." || strings.Contains(id, "/") {
			return usageError{fmt.Errorf("%q is not an ID: it must be one word without /", id)}
		}
	}
	return nil
}

// The arguments of commands about one object.
type (
	accountArg struct {
		Account string `arg:"" help:"ID of the account."`
	}
	userArg struct {
		User string `arg:"" help:"ID of the user."`
	}
	keyArg struct {
		Key string `arg:"" help:"ID of the key."`
	}
	jobArg struct {
		Job string `arg:"" help:"ID of the job."`
	}
	lineArg struct {
		Line string `arg:"" help:"ID of the line."`
	}
)

// paging has the flags of every list.
type paging struct {
	Limit int    `help:"Number of entries." default:"100"`
	After string `help:"Continue after this ID." placeholder:"ID"`
}

func (p paging) query() url.Values {
	query := url.Values{"limit": {strconv.Itoa(p.Limit)}}
	add(query, "after", p.After)
	return query
}

// add adds a parameter if value is not empty.
func add(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// idempotencyFlag has the flag for the Idempotency-Key of a command.
type idempotencyFlag struct {
	IdempotencyKey string `help:"A repetition with the same key within 24 hours does nothing and prints the first answer." placeholder:"TEXT"`
}

// call is a request to the operator API, and how its answer is printed.
type call struct {
	method, path   string
	query          url.Values
	body           fields // optional
	idempotencyKey string // the Idempotency-Key; optional
	view           view
	service        bool  // send the request to the running service
	raw            bool  // print the answer without formatting
	notFound       error // replaces the API's error for a 404, if not nil
}

// call sends a request to the operator API and prints the answer, or returns the answer's
// error message.
func (p *process) call(c call) error {
	if err := checkIDs(c.path); err != nil {
		return err
	}
	settings, err := p.settings()
	if err != nil {
		return err
	}
	request := app.OperatorRequest{Method: c.method, Path: c.path, Once: c.idempotencyKey}
	if len(c.query) > 0 {
		request.Path += "?" + c.query.Encode()
	}
	if c.body != nil {
		if request.Body, err = json.Marshal(c.body); err != nil {
			return err
		}
	}
	answer, err := p.do(settings, c, request)
	if err != nil {
		return err
	}
	switch {
	case answer.Status == http.StatusNotFound && c.notFound != nil:
		return c.notFound
	case answer.Status >= http.StatusBadRequest:
		return errorOf(answer)
	}
	if c.raw {
		_, err = p.stdout.Write(answer.Body)
		return err
	}
	body := bytes.TrimSpace(answer.Body)
	if len(body) == 0 {
		return nil
	}
	return p.print(body, c.view)
}

// do sends the request to the running service, or to an operator API in this process on
// the database of the settings.
func (p *process) do(settings *app.Settings, c call, request app.OperatorRequest) (answer app.OperatorAnswer, err error) {
	if c.service {
		return app.AskService(p.ctx, settings, request)
	}
	operator, err := app.OpenOperator(p.ctx, settings)
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, operator.Close()) }()
	return operator.Do(p.ctx, request)
}

// errorOf returns the error of an answer. A 400 with a parameter is a usageError, because
// the parameter comes from the command line.
func errorOf(answer app.OperatorAnswer) error {
	var body struct {
		Error struct {
			Message string `json:"message"`
			Code    string `json:"code"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer.Body, &body); err != nil || body.Error.Message == "" {
		return fmt.Errorf("the operator API answered with status %d and no error message", answer.Status)
	}
	flag := ""
	switch body.Error.Param {
	case "":
	case "usd": // an argument, not a flag
		flag = "usd: "
	default:
		flag = "--" + strings.ToLower(strings.ReplaceAll(body.Error.Param, "_", "-")) + ": "
	}
	err := fmt.Errorf("%s%s (%s)", flag, body.Error.Message, body.Error.Code)
	if answer.Status == http.StatusBadRequest && flag != "" {
		return usageError{err}
	}
	return err
}
