package userpages

import (
	"slices"
	"time"

	"tollgate/internal/availability"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
)

// statusPage is the public page with the availability of models.
type statusPage struct {
	State  ui.Badge
	Models []modelStatus
	Empty  ui.EmptyState // replaces Models if there are none
}

// modelStatus is the availability of a model, without its providers.
type modelStatus struct {
	ID    string
	State ui.Badge
	Share string // percentage of the good minutes, over all days
	Bars  ui.DayBars
}

// recentMinutes is the maximum age of a model's newest minute with requests. An older minute does not show the
// present state.
const recentMinutes = 15 * time.Minute

// status shows the availability of the models on sale. The content is the same for all visitors.
func (c *console) status(v *page.Visit) (page.Responder, error) {
	history, err := c.Availability.History(v.View)
	if err != nil {
		return nil, err
	}
	content := statusPage{Empty: ui.EmptyState{Title: "No models are for sale yet"}}
	snapshot := c.Catalog.Current()
	for _, m := range snapshot.Models() {
		if (m.State == catalog.StateOpen || m.State == catalog.StateMaintenance) && !snapshot.IsSandbox(m.ID) {
			content.Models = append(content.Models, modelStatusOf(m, history))
		}
	}
	content.State = overallState(content.Models)
	return page.FullPage{Name: "status", Title: "Availability", Main: content, Wide: true}, nil
}

// overallState returns the worst state of the models. Maintenance does not count as a failure.
func overallState(models []modelStatus) ui.Badge {
	has := func(tone ui.Tone) bool {
		return slices.ContainsFunc(models, func(m modelStatus) bool { return m.State.Tone == tone })
	}
	switch {
	case has(ui.Bad):
		return ui.Badge{Tone: ui.Bad, Label: "some models fail at the moment"}
	case has(ui.OK):
		return ui.Badge{Tone: ui.OK, Label: "no model fails at the moment"}
	}
	return noRecent()
}

func noRecent() ui.Badge { return ui.Badge{Label: "no recent requests"} }

func modelStatusOf(m *catalog.Model, history availability.History) modelStatus {
	days := history.Models[m.ID]
	var sum, newest availability.DayCount
	bars := ui.DayBars{Label: "Availability on each of the last 90 days (UTC)"}
	for i := range availability.Days {
		var day availability.DayCount
		if days != nil {
			day = days[i]
		}
		sum.Up, sum.Minutes = sum.Up+day.Up, sum.Minutes+day.Minutes
		if day.Minutes > 0 {
			newest = day
		}
		date := ui.Day(time.Unix(0, 0).UTC().AddDate(0, 0, int(history.FirstDay)+i))
		bars.Days = append(bars.Days, ui.DayBar{Day: date, Good: day.Up, All: day.Minutes})
	}
	s := modelStatus{ID: m.ID, State: noRecent(), Share: ui.PercentFloor(sum.Up, sum.Minutes), Bars: bars}
	switch recent := history.AtMS-newest.NewestMS < recentMinutes.Milliseconds(); {
	case m.State == catalog.StateMaintenance:
		s.State = ui.Badge{Tone: ui.Warn, Label: "maintenance"}
	case recent && newest.NewestUp:
		s.State = ui.Badge{Tone: ui.OK, Label: "works"}
	case recent:
		s.State = ui.Badge{Tone: ui.Bad, Label: "fails"}
	}
	return s
}
