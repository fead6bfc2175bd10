package job

import (
	"bytes"
	"encoding/json"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// The bodies of a job (interface.md, Job). Members are in the order in which
// the specification lists them.
type (
	submitBody struct {
		ID     string `json:"id"`
		Object string `json:"object"`
		Status string `json:"status"`
		Model  string `json:"model"`
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

// object is a job's `object`.
func object(kind string) string { return kind + ".generation.job" }

// submitted is the body of the 202.
func (r *record) submitted() []byte {
	return render(submitBody{ID: r.id, Object: object(r.kind), Status: statusQueued, Model: r.model})
}

// base is what every full body has.
func (r *record) base(status string) jobBody {
	return jobBody{ID: r.id, Object: object(r.kind), Status: status, Created: r.createdMS / 1000, Model: r.model}
}

// queued is the body of a job that has not started.
func (r *record) queued(position, etaSeconds int64) []byte {
	b := r.base(statusQueued)
	b.Position, b.ETA = &position, &etaSeconds
	return render(b)
}

// processing is the body of a job that has started.
func (r *record) processing() []byte { return render(r.base(statusProcessing)) }

// succeeded is the body of a job with results at the given links.
func (r *record) succeeded(links []string) []byte {
	b := r.base(statusSucceeded)
	for _, link := range links {
		b.Data = append(b.Data, dataBody{link})
	}
	b.Usage = videoUsage{Clips: 1, Model: r.model}
	if r.kind == upstream.KindImage {
		b.Usage = imageUsage{Images: int64(len(links)), Resolution: r.plan.Tier, Model: r.model}
	}
	return render(b)
}

// failed is the body of a job that failed.
func (r *record) failed(f jobError) []byte {
	b := r.base(statusFailed)
	b.Error = &errorBody{Message: f.message, Type: fault.LookupJob(f.code).Type, Code: string(f.code)}
	if f.param != "" {
		b.Error.Param = &f.param
	}
	return render(b)
}

// render writes a body. It holds strings and numbers, so it cannot fail.
func render(body any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// event is the type of the event that tells a job's end (interface.md, Event
// types).
func (r *record) event(succeeded bool) string {
	if succeeded {
		return r.kind + ".completed"
	}
	return r.kind + ".failed"
}
