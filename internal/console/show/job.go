package show

import "tollgate/internal/console/ui"

// JobStates returns the states of jobs as options, after the option All.
func JobStates() []ui.Option {
	return []ui.Option{{Label: "All"}, {Value: "queued", Label: "Waiting"}, {Value: "processing", Label: "Running"},
		{Value: "succeeded", Label: "Done"}, {Value: "failed", Label: "Failed"}}
}

// JobBadge returns the badge of a job's state.
func JobBadge(status string) ui.Badge {
	switch status {
	case "queued":
		return ui.Badge{Tone: ui.Info, Label: "waiting"}
	case "processing":
		return ui.Badge{Tone: ui.Info, Label: "running"}
	case "succeeded":
		return ui.Badge{Tone: ui.OK, Label: "done"}
	case "failed":
		return ui.Badge{Tone: ui.Bad, Label: "failed"}
	}
	return ui.Badge{Label: ui.Words(status)}
}

// JobStep returns the words for a step of a job. ok is false if customers do not see the step.
func JobStep(name string) (words ui.Words, ok bool) {
	words, ok = map[string]ui.Words{
		"queued": "Waiting", "processing": "Started", "submitted": "Sent to a provider", "rendered": "Generated",
		"kept": "Waiting to be stored", "stored": "Stored",
		"attempt_failed": "An attempt failed", "requeued": "Waiting again", "cancelled": "Cancelled by the operator",
		"succeeded": "Done", "failed": "Failed",
	}[name]
	return words, ok
}
