package show

import "tollgate/internal/console/part"

// JobState is a state of jobs, as the interface names it, with its word here.
type JobState struct {
	Status string
	Badge  part.Badge
}

// JobStates returns all states of jobs in order.
func JobStates() []JobState {
	return []JobState{
		{"queued", part.Badge{Tone: part.Info, Word: "waiting"}},
		{"processing", part.Badge{Tone: part.Info, Word: "running"}},
		{"succeeded", part.Badge{Tone: part.OK, Word: "done"}},
		{"failed", part.Badge{Tone: part.Bad, Word: "failed"}},
	}
}

// JobBadge returns the badge of a job's state.
func JobBadge(status string) part.Badge {
	for _, s := range JobStates() {
		if s.Status == status {
			return s.Badge
		}
	}
	return part.Badge{Word: status}
}

// JobTab returns the label of a state's tab. The empty state is the tab of all jobs.
func JobTab(status string) string {
	if status == "" {
		return "All"
	}
	word := JobBadge(status).Word
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
