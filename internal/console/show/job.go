package show

import "tollgate/internal/console/ui"

// JobState is a state of jobs, as the interface names it, with its word here.
type JobState struct {
	Status string
	Badge  ui.Badge
}

// JobStates returns all states of jobs in order.
func JobStates() []JobState {
	return []JobState{
		{"queued", ui.Badge{Tone: ui.Info, Label: "waiting"}},
		{"processing", ui.Badge{Tone: ui.Info, Label: "running"}},
		{"succeeded", ui.Badge{Tone: ui.OK, Label: "done"}},
		{"failed", ui.Badge{Tone: ui.Bad, Label: "failed"}},
	}
}

// JobBadge returns the badge of a job's state.
func JobBadge(status string) ui.Badge {
	for _, s := range JobStates() {
		if s.Status == status {
			return s.Badge
		}
	}
	return ui.Badge{Label: status}
}

// JobTab returns the label of a state's tab. The empty state is the tab of all jobs.
func JobTab(status string) string {
	if status == "" {
		return "All"
	}
	word := JobBadge(status).Label
	return string(word[0]-'a'+'A') + word[1:]
}

// JobStep returns the word for a step of a job. ok is false if users do not see the step.
func JobStep(name string) (word string, ok bool) {
	word, ok = map[string]string{
		"queued": "Waits", "processing": "Started", "submitted": "Sent to a provider", "rendered": "Made",
		"kept": "Waits to be stored", "stored": "Stored",
		"attempt_failed": "An attempt failed", "requeued": "Waits again", "cancelled": "Cancelled by the operator",
		"succeeded": "Done", "failed": "Failed",
	}[name]
	return word, ok
}
