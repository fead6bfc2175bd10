package dashscope

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	reply, err := a.QueryTask(ctx, task.Kind, ticket, "tasks")
	if err != nil {
		return nil, err
	}
	output := gjson.GetBytes(reply.Body, "output")
	if output.Get("task_status").String() == "" {
		return nil, reply.PollFailure()
	}
	progress, failure := readTask(task, reply, ticket, output)
	if failure != nil {
		return nil, reply.Redact(failure)
	}
	return progress, nil
}

// readTask returns the status of a task. An unknown status counts as running; the line's longest
// wait ends the task.
func readTask(task jobcall.Task, reply *exchange.Reply, ticket string, output gjson.Result) (*jobcall.TaskStatus, *upstream.JobFailure) {
	switch output.Get("task_status").String() {
	case "SUCCEEDED":
		if task.Kind == upstream.KindImage {
			results, failure := readPictures(reply, output, task.Count)
			return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: results}, failure
		}
		video := output.Get("video_url")
		if !video.Exists() {
			video = output.Get("results.video_url") // for some older models
		}
		return exchange.SuccessStatus(task.Kind, ticket, video, 1)
	case "FAILED":
		return nil, taskFailure(task.Kind, reply, output)
	case "CANCELED", "CANCELLED":
		return nil, reply.TaskFailure(task.Kind, "", "cancelled at the provider")
	case "UNKNOWN":
		return nil, upstream.UnknownTask(task.Kind, "the provider no longer knows the task")
	}
	return &jobcall.TaskStatus{Ticket: ticket}, nil
}

// Cancel implements jobcall.Generator. DashScope cancels waiting tasks. It finishes running tasks
// and returns an error.
func (a *Adapter) Cancel(ctx context.Context, _ jobcall.Task, ticket string) error {
	return a.StopTask(ctx, ticket, http.MethodPost, "tasks", ticket, "cancel")
}
