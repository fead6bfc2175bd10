// Package measure owns units and quantities for the results of requests that tokens do not count.
//
// Invariant: units are data. The ledger stores, adds up, audits and shows quantities of any unit, so
// a new unit is one constant in the package of its kind of model.
package measure

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/money"
)

// Unit is the name of a counted thing, in the singular. Receipts and days store the name. The suffix
// _ms marks a length of time in milliseconds; the APIs show the length in seconds.
type Unit string

// The units in every row of a usage report. The quantity of a video may be 0, because some models choose
// the length of their clips.
const (
	Image     Unit = "image"
	VideoMS   Unit = "video_ms"
	Character Unit = "character"
	AudioMS   Unit = "audio_ms"
	Search    Unit = "search"
)

// Quantity is the quantity of one request. The zero value means that the request has only tokens.
type Quantity struct {
	Unit Unit
	N    int64
}

// length returns the subject of a length of time, such as video for video_ms. It returns false for
// other units.
func (u Unit) length() (string, bool) { return strings.CutSuffix(string(u), "_ms") }

// Whole returns n in whole units for people: a length in seconds, rounded up.
func (u Unit) Whole(n int64) int64 {
	if _, ok := u.length(); ok {
		return (n + 999) / 1000
	}
	return n
}

// Noun returns the noun for a whole number: 1 image, 2 images, 2 searches, 5 seconds of video.
func (u Unit) Noun(whole int64) string {
	noun, suffix := string(u), ""
	if length, ok := u.length(); ok {
		noun, suffix = "second", " of "+length
	}
	switch {
	case whole == 1:
	case strings.HasSuffix(noun, "ch"):
		noun += "es"
	default:
		noun += "s"
	}
	return noun + suffix
}

// Title returns the title of a column: Images, Seconds of video.
func (u Unit) Title() string {
	name := u.Noun(2)
	return strings.ToUpper(name[:1]) + name[1:]
}

// Field returns the unit's name in the APIs: image_count, video_seconds.
func (u Unit) Field() string {
	if length, ok := u.length(); ok {
		return length + "_seconds"
	}
	return string(u) + "_count"
}

// Format returns n as a decimal number, a length of time in seconds.
func (u Unit) Format(n int64) string {
	if _, ok := u.length(); ok {
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	}
	return strconv.FormatInt(n, 10)
}

// Total is the sum of billed requests with the same unit.
type Total struct{ Requests, N int64 }

// Totals are sums by unit.
type Totals map[Unit]Total

// Of returns the totals of billed requests in one unit. Without a unit, it returns nil.
func Of(unit Unit, requests, n int64) Totals {
	if unit == "" {
		return nil
	}
	return Totals{unit: {requests, n}}
}

// Plus returns the sum of two totals. A figure stops at money.Max.
func (t Totals) Plus(o Totals) Totals {
	if len(o) == 0 {
		return t
	}
	sum := maps.Clone(o)
	for unit, a := range t {
		b := sum[unit]
		sum[unit] = Total{money.Plus(a.Requests, b.Requests), money.Plus(a.N, b.N)}
	}
	return sum
}

// Units returns the units of every report and then the other units of the totals in the order of their
// names.
func (t Totals) Units() []Unit {
	units := []Unit{Image, VideoMS, Character, AudioMS, Search}
	for _, unit := range slices.Sorted(maps.Keys(t)) {
		if !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	return units
}

// NamedValue is a number in the answer of an API: a member of JSON, or a column of CSV.
type NamedValue struct{ Name, Value string }

// Values returns the values for the total of a unit. Videos have a second value, the number of clips:
// a video job makes one clip, so the number of clips is the number of requests.
func (t Totals) Values(unit Unit) (values []NamedValue) {
	if unit == VideoMS {
		values = append(values, NamedValue{"clip_count", strconv.FormatInt(t[unit].Requests, 10)})
	}
	return append(values, NamedValue{unit.Field(), unit.Format(t[unit].N)})
}

// Values returns the values of one request, without zeros.
func (q Quantity) Values() []NamedValue {
	return slices.DeleteFunc(Of(q.Unit, 1, q.N).Values(q.Unit), func(v NamedValue) bool { return v.Value == "0" })
}

// AppendJSON adds values to a JSON object. The object must have a member.
func AppendJSON(object []byte, values []NamedValue) []byte {
	object = object[:len(object)-1] // without the closing brace
	for _, v := range values {
		object = strconv.AppendQuote(append(object, ','), v.Name)
		object = append(append(object, ':'), v.Value...)
	}
	return append(object, '}')
}
