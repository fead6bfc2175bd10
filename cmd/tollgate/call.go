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

	"tollgate/internal/app"
)

// fields are the members of a JSON body.
type fields map[string]any

// set adds a member if its flag was given.
func set[T any](body fields, name string, value *T) {
	if value != nil {
		body[name] = value
	}
}

// path joins the parts of a path below the operator API's base.
func path(parts ...string) string {
	var out strings.Builder
	for _, part := range parts {
		out.WriteByte('/')
		out.WriteString(url.PathEscape(part))
	}
	return out.String()
}

// checkIDs refuses ids of the command line that are no segment of a path, of which the
// operator API would say that there is no such endpoint.
func checkIDs(path string) error {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		id, err := url.PathUnescape(part)
		if err != nil || id == "" || id == "." || id == ".." || strings.Contains(id, "/") {
			return usageError{fmt.Errorf("%q is no id", id)}
		}
	}
	return nil
}

// paging are the flags of every list.
type paging struct {
	Limit int    `help:"Most entries to list." default:"100"`
	After string `help:"List what follows this id." placeholder:"ID"`
}

// query returns the flags as a list's parameters.
func (l paging) query() url.Values {
	query := url.Values{"limit": {strconv.Itoa(l.Limit)}}
	add(query, "after", l.After)
	return query
}

// add adds a parameter that has a value.
func add(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// once is the flag of commands that must not be done twice.
type once struct {
	IdempotencyKey string `help:"Within 24 hours, a repetition with the same key does nothing and prints the first answer." placeholder:"TEXT"`
}

// call is what a command asks the operator API for, and how its answer is shown.
type call struct {
	method, path string
	query        url.Values
	body         fields // nil: none
	once         string // the Idempotency-Key; empty: none
	view         view
	service      bool  // is for the running service, not for the database
	asIs         bool  // the answer is printed as it comes
	unknown      error // what is said of a 404; nil: what the API says
}

// call sends a request to the operator API inside this process, on the database
// of the settings, so that commands and API are one code path; or to that of the
// running service. It prints the answer, or returns the refusal's message.
func (p *process) call(c call) error {
	if err := checkIDs(c.path); err != nil {
		return err
	}
	settings, err := p.settings()
	if err != nil {
		return err
	}
	ask := app.OperatorRequest{Method: c.method, Path: c.path, Once: c.once}
	if len(c.query) > 0 {
		ask.Path += "?" + c.query.Encode()
	}
	if c.body != nil {
		if ask.Body, err = json.Marshal(c.body); err != nil {
			return err
		}
	}
	answer, err := p.answer(settings, c, ask)
	if err != nil {
		return err
	}
	switch {
	case answer.Status == http.StatusNotFound && c.unknown != nil:
		return c.unknown
	case answer.Status >= http.StatusBadRequest:
		return refusal(answer)
	}
	if c.asIs {
		_, err = p.stdout.Write(answer.Body)
		return err
	}
	raw := bytes.TrimSpace(answer.Body)
	if len(raw) == 0 {
		return nil
	}
	return p.print(raw, c.view)
}

// answer asks the service or the database.
func (p *process) answer(settings *app.Settings, c call, ask app.OperatorRequest) (answer app.OperatorAnswer, err error) {
	if c.service {
		return app.AskService(p.ctx, settings, ask)
	}
	operator, err := app.OpenOperator(p.ctx, settings)
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, operator.Close()) }()
	return operator.Do(p.ctx, ask)
}

// refusal turns an error answer into an error that says what to do. A value that
// is at fault came from the command line, whoever has found that out.
func refusal(answer app.OperatorAnswer) error {
	var body struct {
		Error struct {
			Message string `json:"message"`
			Code    string `json:"code"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer.Body, &body); err != nil || body.Error.Message == "" {
		return fmt.Errorf("the operator API answered %d", answer.Status)
	}
	at := ""
	if body.Error.Param != "" {
		at = "--" + strings.ToLower(strings.ReplaceAll(body.Error.Param, "_", "-")) + ": "
	}
	err := fmt.Errorf("%s%s (%s)", at, body.Error.Message, body.Error.Code)
	if answer.Status == http.StatusBadRequest && at != "" {
		return usageError{err}
	}
	return err
}
