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

// call sends a request to the operator API inside this process, on the
// database of the settings, so that commands and API are one code path. It
// prints the answer as indented JSON, or returns the refusal's message.
func (p *process) call(method, path string, list *paging, body fields) error {
	return p.ask(false, method, path, list, body)
}

// ask is call; create says whether a missing database is created.
func (p *process) ask(create bool, method, path string, list *paging, body fields) (err error) {
	settings, err := p.settings()
	if err != nil {
		return err
	}
	operator, err := app.OpenOperator(p.ctx, settings, create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.Close()) }()

	query := url.Values{}
	if list != nil {
		query.Set("limit", strconv.Itoa(list.Limit))
		if list.After != "" {
			query.Set("after", list.After)
		}
	}
	var raw []byte
	if body != nil {
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	answer, err := operator.Do(p.ctx, method, path+"?"+query.Encode(), raw)
	if err != nil {
		return err
	}
	if answer.Status >= http.StatusBadRequest {
		return refusal(answer)
	}
	if len(bytes.TrimSpace(answer.Body)) == 0 {
		return nil
	}
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(answer.Body), "", "  "); err != nil {
		return fmt.Errorf("the operator API answered no JSON: %w", err)
	}
	out.WriteByte('\n')
	_, err = p.stdout.Write(out.Bytes())
	return err
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
		at = "--" + strings.ReplaceAll(body.Error.Param, "_", "-") + ": "
	}
	err := fmt.Errorf("%s%s (%s)", at, body.Error.Message, body.Error.Code)
	if answer.Status == http.StatusBadRequest && at != "" {
		return usageError{err}
	}
	return err
}
