package ui

import (
	"fmt"
	"strings"
)

// DayBars is a row with a bar for each day. The height of a bar, not only its color, shows how good the day
// was.
type DayBars struct {
	Label Words // what the bars show
	Days  []DayBar
}

// DayBar is a day, such as `2026-05-03`. Good of All parts of the day, such as minutes, were good. All is 0 if
// there is no data.
type DayBar struct {
	Day       string
	Good, All int64
}

// Dimensions of the drawing. A bar begins every dayStep units.
const (
	dayStep, dayWidth = 10, 7
	daysHeight        = 40
)

// Width returns the width of the drawing.
func (b DayBars) Width() int { return dayStep * len(b.Days) }

// Whole returns the SVG path of the days without a bad part.
func (b DayBars) Whole() string {
	return b.path(daysHeight, func(d DayBar) bool { return d.All > 0 && d.Good == d.All })
}

// Empty returns the SVG path of the days without data.
func (b DayBars) Empty() string { return b.path(4, func(d DayBar) bool { return d.All == 0 }) }

// path returns the SVG path of the days selected by draws, with bars of the given height.
func (b DayBars) path(height int, draws func(DayBar) bool) string {
	var path strings.Builder
	for i, d := range b.Days {
		if draws(d) {
			fmt.Fprintf(&path, "M%d %dh%dv-%dh-%dz", i*dayStep, daysHeight, dayWidth, height, dayWidth)
		}
	}
	return path.String()
}

// FlawedDay is the bar of a day with a bad part.
type FlawedDay struct {
	X, Y, Height int
	Tone         Tone
	Day, Share   string
}

// Flawed returns the bars of the days with a bad part.
func (b DayBars) Flawed() (all []FlawedDay) {
	for i, d := range b.Days {
		if d.Good >= d.All {
			continue
		}
		f := FlawedDay{X: i * dayStep, Height: daysHeight * 3 / 4, Tone: Warn, Day: d.Day, Share: PercentFloor(d.Good, d.All)}
		if d.Good*100 < d.All*95 {
			f.Height, f.Tone = daysHeight/2, Bad
		}
		f.Y = daysHeight - f.Height
		all = append(all, f)
	}
	return all
}
