package row

import (
	"bytes"
	"encoding/json"
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// The bodies of a job (interface.md, Job), with members in the order of the specification.
type (
	submitBody struct {
		ID     string `json:"id"`
		Object string `json:"object"`
		Status string `json:"status"`
		Model  string `json:"model"`
		// Message tells clients that expect the result at once what to do.
		Message string `json:"message"`
	}
	jobBody struct {
		ID       string     `json:"id"`
		Object   string     `json:"object"`
		Status   string     `json:"status"`
		Created  int64      `json:"created"`
		Model    string     `json:"model"`
		Position *int64     `json:"queue_position,omitempty"`
		ETA      *int64     `json:"eta_seconds,omitempty"`
		Data     []dataBody `json:"data,omitempty"`
		Usage    any        `json:"usage,omitempty"`
		Error    *errorBody `json:"error,omitempty"`
	}
	dataBody struct {
		URL string `json:"url"`
	}
	imageUsage struct {
		Images     int64  `json:"images"`
		Resolution string `json:"resolution"`
		Model      string `json:"model"`
	}
	// openAIUsage is an imageUsage with the members of OpenAI's usage, which are 0 because images are not
	// charged by tokens.
	openAIUsage struct {
		imageUsage
		InputTokens  int64 `json:"input_tokens"`
		OutputTokens int64 `json:"output_tokens"`
		TotalTokens  int64 `json:"total_tokens"`
		InputDetails struct {
			Text  int64 `json:"text_tokens"`
			Image int64 `json:"image_tokens"`
		} `json:"input_tokens_details"`
	}
	videoUsage struct {
		Clips int64  `json:"clips"`
		Model string `json:"model"`
	}
	errorBody struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Code    string  `json:"code"`
		Param   *string `json:"param"`
	}
)

// Path returns the path of a job's endpoint.
func Path(kind, id string) string { return "/v1/" + kind + "s/jobs/" + id }

// object returns the member object of a body.
func object(kind string) string { return kind + ".generation.job" }

// SubmittedBody returns the body of the 202.
func (r *Job) SubmittedBody() []byte {
	b := submitBody{ID: r.ID, Object: object(r.Kind), Status: StatusQueued, Model: r.Model,
		Message: fmt.Sprintf("The job is queued. Poll GET %s until `status` is `succeeded` or `failed`; `data` then has the links.",
			Path(r.Kind, r.ID))}
	if r.Kind == upstream.KindImage {
		b.Message += " To get the images in the response instead, send the header `Prefer: wait=60`, or use a key that waits for pictures."
	}
	return Render(b)
}

// Base returns the members of all bodies, except the body of the 202.
func (r *Job) Base(status string) jobBody {
	return jobBody{ID: r.ID, Object: object(r.Kind), Status: status, Created: r.CreatedMS / 1000, Model: r.Model}
}

// QueuedBody returns the body of a job before its start.
func (r *Job) QueuedBody(position, etaSeconds int64) []byte {
	b := r.Base(StatusQueued)
	b.Position, b.ETA = &position, &etaSeconds
	return Render(b)
}

// ProcessingBody returns the body of a started job.
func (r *Job) ProcessingBody() []byte { return Render(r.Base(StatusProcessing)) }

// SucceededBody returns the body of a job with the links of its results.
func (r *Job) SucceededBody(links []string) []byte {
	b := r.Base(StatusSucceeded)
	for _, link := range links {
		b.Data = append(b.Data, dataBody{link})
	}
	b.Usage = videoUsage{Clips: 1, Model: r.Model}
	if r.Kind == upstream.KindImage {
		b.Usage = imageUsage{Images: int64(len(links)), Resolution: r.Plan.Tier, Model: r.Model}
	}
	return Render(b)
}

// FailedBody returns the body of a failed job.
func (r *Job) FailedBody(f JobError) []byte {
	b := r.Base(StatusFailed)
	b.Error = &errorBody{Message: f.Message, Type: fault.LookupJob(f.Code).Type, Code: string(f.Code)}
	if f.Param != "" {
		b.Error.Param = &f.Param
	}
	return Render(b)
}

// Render encodes a body. It cannot fail, because a body has only strings and numbers.
func Render(body any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// Event returns the type of the event at the job's end (interface.md, Event types).
func (r *Job) Event(succeeded bool) string {
	if succeeded {
		return r.Kind + ".completed"
	}
	return r.Kind + ".failed"
}

// Outcome returns the links in the body of an ended job, or the code and message of its error. It
// returns nothing if the job has not ended.
func (r *Job) Outcome() (links []string, code, message string, err error) {
	if r.Body == "" {
		return nil, "", "", nil
	}
	var body jobBody
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		return nil, "", "", fmt.Errorf("read job %s: %w", r.ID, err)
	}
	for _, d := range body.Data {
		links = append(links, d.URL)
	}
	if body.Error != nil {
		code, message = body.Error.Code, body.Error.Message
	}
	return links, code, message, nil
}

// AwaitedResult is the end of a job for a client that waited for the job.
type AwaitedResult struct {
	Created int64    // Unix seconds of the submission
	Links   []string // to the images of a job that succeeded
	Usage   []byte   // JSON object of a job that succeeded
	Failure *fault.Error
}

// AwaitedResult returns the result of an image job that has ended.
func (r *Job) AwaitedResult() (*AwaitedResult, error) {
	var body jobBody
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
		return nil, fmt.Errorf("read job %s: %w", r.ID, err)
	}
	result := &AwaitedResult{Created: body.Created}
	if e := body.Error; e != nil {
		result.Failure = &fault.Error{Code: fault.Code(e.Code), Template: e.Message, Fields: map[string]any{"job": r.ID}}
		if e.Param != nil {
			result.Failure.Param = *e.Param
		}
		return result, nil
	}
	for _, d := range body.Data {
		result.Links = append(result.Links, d.URL)
	}
	result.Usage = Render(openAIUsage{imageUsage: imageUsage{Images: int64(len(result.Links)), Resolution: r.Plan.Tier, Model: r.Model}})
	return result, nil
}
