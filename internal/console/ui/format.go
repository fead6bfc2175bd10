package ui

import (
	"math"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/money"
)

// significantDigits is the number of significant digits of an amount below one dollar.
const significantDigits = 4

// USD formats an amount for people, rounded. It shows two decimals from one dollar up, and up to four
// significant digits below one dollar.
func USD(a money.Amount) string {
	if a == 0 {
		return "$0"
	}
	return formatDecimals(a, decimals(a))
}

// ExactUSD formats an amount with all of its digits, and at least two decimals.
func ExactUSD(a money.Amount) string { return formatDecimals(a, exactDecimals(a)) }

// minDecimals and maxDecimals are the decimals of a cent and of a nano-dollar.
const minDecimals, maxDecimals = 2, 9

// decimals returns the number of decimals that USD shows for an amount.
func decimals(a money.Amount) int {
	a = abs(a)
	if a >= money.USD {
		return minDecimals
	}
	n := maxDecimals
	limit := money.Amount(1)
	for range significantDigits {
		limit *= 10
	}
	unit := money.Amount(1)
	for a/unit >= limit {
		unit *= 10
		n--
	}
	return min(n, exactDecimals(a.Round(unit)))
}

// exactDecimals returns the number of decimals of an amount, at least two.
func exactDecimals(a money.Amount) int {
	n := maxDecimals
	for n > minDecimals && a%10 == 0 {
		a /= 10
		n--
	}
	return n
}

// formatDecimals formats an amount with a number of decimals, rounded half away from zero.
func formatDecimals(a money.Amount, decimals int) string {
	sign := ""
	if a < 0 {
		sign, a = "-", abs(a)
	}
	unit := money.Amount(1)
	for range maxDecimals - decimals {
		unit *= 10
	}
	a = a.Round(unit)
	fraction := strconv.FormatInt(int64(money.USD+a%money.USD), 10)[1 : 1+decimals]
	return sign + "$" + Thousands(int64(a/money.USD)) + "." + fraction
}

func abs(a money.Amount) money.Amount {
	if a < 0 {
		a = -max(a, -math.MaxInt64)
	}
	return a
}

// Credits formats an amount in credits, with one decimal.
func Credits(a money.Amount) Words {
	text := ""
	if a < 0 {
		text, a = "-", -a
	}
	tenths := int64((a + money.Credit/20) / (money.Credit / 10))
	if tenths == 0 && a > 0 {
		return Sayf("%s credits", text+"< 0.1")
	}
	text += Thousands(tenths / 10)
	if tenths%10 != 0 {
		text += "." + strconv.FormatInt(tenths%10, 10)
	}
	if tenths == 10 {
		return Sayf("%s credit", text)
	}
	return Sayf("%s credits", text)
}

// Thousands formats a whole number with separators.
func Thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// Percent formats part of whole with one decimal, or as a dash if whole is zero.
func Percent(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	tenths := (part*1000 + whole/2) / whole
	if tenths == 0 && part > 0 {
		return "< 0.1 %"
	}
	return strconv.FormatFloat(float64(tenths)/10, 'f', -1, 64) + " %"
}

// PercentFloor formats part of whole with two decimals, or as a dash if whole is zero. It rounds down, so that
// only a complete part is 100 %.
func PercentFloor(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return strconv.FormatFloat(float64(part*10_000/whole)/100, 'f', -1, 64) + " %"
}

// UTC formats a time in Unix milliseconds. All times for people have this format; console.js shows them in the
// visitor's time zone.
func UTC(ms int64) Words {
	t := time.UnixMilli(ms).UTC()
	return Sayf("%s-%s-%s %s UTC", t.Format("2006"), t.Format("01"), t.Format("02"), t.Format(time.TimeOnly))
}

// ISO formats a time in Unix milliseconds for programs.
func ISO(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// TimeFormat is the format of the values of time fields in forms, in UTC.
const TimeFormat = "2006-01-02T15:04"

// TimeValue returns the value of a time field, or an empty string for 0.
func TimeValue(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(TimeFormat)
}

// Day formats a day for people, queries and files.
func Day(t time.Time) string { return t.Format(time.DateOnly) }

// Month formats a month for people.
func Month(t time.Time) Words {
	return Sayf([...]Words{"January %s", "February %s", "March %s", "April %s", "May %s", "June %s", "July %s", "August %s",
		"September %s", "October %s", "November %s", "December %s"}[t.Month()-1], t.Format("2006"))
}

// AxisDay formats a day below a chart, where Day has no room.
func AxisDay(t time.Time) Words {
	return Sayf([...]Words{"%s Jan", "%s Feb", "%s Mar", "%s Apr", "%s May", "%s Jun", "%s Jul", "%s Aug", "%s Sep", "%s Oct", "%s Nov",
		"%s Dec"}[t.Month()-1], t.Day())
}

// AxisClock formats a time of day below a chart, where UTC has no room.
func AxisClock(ms int64) string { return time.UnixMilli(ms).UTC().Format("15:04") }

// FormatDuration formats milliseconds: 84 ms, 1.4 s, 3 min 20 s, 2 h 5 min.
func FormatDuration(ms int64) Words {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return Sayf("%s ms", ms)
	case d < time.Minute:
		return Sayf("%s s", strconv.FormatFloat(float64((ms+50)/100)/10, 'f', -1, 64))
	case d < time.Hour:
		if seconds := int(d.Seconds()) % 60; seconds > 0 {
			return Sayf("%s min %s s", int(d.Minutes()), seconds)
		}
		return Sayf("%s min", int(d.Minutes()))
	case d%time.Hour >= time.Minute:
		return Sayf("%s h %s min", int(d.Hours()), int(d.Minutes())%60)
	}
	return Sayf("%s h", int(d.Hours()))
}

// FormatBytes formats a size in bytes: 900 B, 84 KB, 1.8 MB, 2.5 GB.
func FormatBytes(bytes int64) string {
	switch {
	case bytes < 1000:
		return strconv.FormatInt(bytes, 10) + " B"
	case bytes < 999_500:
		return strconv.FormatInt((bytes+500)/1000, 10) + " KB"
	case bytes < 999_950_000:
		return strconv.FormatFloat(float64((bytes+50_000)/100_000)/10, 'f', -1, 64) + " MB"
	}
	return strconv.FormatFloat(float64((bytes+50_000_000)/100_000_000)/10, 'f', -1, 64) + " GB"
}

// Plural formats n with the format one if n is 1, and with the format many otherwise.
func Plural(n int, one, many Words) Words {
	if n == 1 {
		return Sayf(one, n)
	}
	return Sayf(many, n)
}

// Requests formats a number of requests.
func Requests(n int64) Words {
	if n == 1 {
		return "1 request"
	}
	return Sayf("%s requests", Thousands(n))
}

// Title returns a word with a capital first letter.
func Title[T Words | string](word T) T {
	if word == "" {
		return ""
	}
	return T(strings.ToUpper(string(word[:1]))) + word[1:]
}

// OrDash returns the text, or a dash if the text is empty.
func OrDash[T Words | string](text T) T {
	if text == "" {
		return "–"
	}
	return text
}

// Share returns part in percent of whole, or 0 if whole is not positive.
func Share(part, whole money.Amount) int {
	if whole <= 0 {
		return 0
	}
	return int(float64(part) / float64(whole) * 100)
}
