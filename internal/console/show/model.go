package show

import (
	"tollgate/internal/catalog"
	"tollgate/internal/console/part"
)

// ModelState is whether a model is open.
func ModelState(s catalog.ModelState) part.Badge {
	switch s {
	case catalog.StateOpen:
		return part.Badge{Tone: part.OK, Word: "open"}
	case catalog.StateMaintenance:
		return part.Badge{Tone: part.Warn, Word: "maintenance"}
	case catalog.StateComingSoon:
		return part.Badge{Tone: part.Info, Word: "coming soon"}
	}
	return part.Badge{Word: string(s)}
}
