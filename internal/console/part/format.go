package part

import (
	"strconv"
	"strings"
	"time"

	"tollgate/internal/money"
)

// cent is the smallest amount that is written as cents.
const cent = money.USD / 100

// USD writes an amount for people: two decimals from a cent up, below it up to
// six significant digits. It is rounded; the exact value belongs beside it.
func USD(a money.Amount) string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	if a == 0 {
		return "$0"
	}
	if a < cent {
		text := a.String()
		digits := strings.TrimLeft(text, "0.")
		if len(digits) <= 6 {
			return sign + "$" + text
		}
		unit := money.Amount(1)
		for range len(digits) - 6 {
			unit *= 10
		}
		return sign + "$" + ((a + unit/2) / unit * unit).String()
	}
	cents := int64((a + cent/2) / cent)
	part := strconv.FormatInt(cents%100+100, 10)[1:]
	return sign + "$" + Thousands(cents/100) + "." + part
}

// Credits writes an amount in credits, to one decimal.
func Credits(a money.Amount) string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	tenths := int64((a + money.Credit/20) / (money.Credit / 10))
	if tenths == 0 && a > 0 {
		return sign + "< 0.1 credits"
	}
	text := Thousands(tenths / 10)
	if tenths%10 != 0 {
		text += "." + strconv.FormatInt(tenths%10, 10)
	}
	if tenths == 10 {
		return sign + text + " credit"
	}
	return sign + text + " credits"
}

// Thousands writes a whole number with separators.
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

// Percent writes a share with one decimal; of nothing it is a dash.
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

// UTC writes a time for people.
func UTC(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") }

// ISO writes a time for machines.
func ISO(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// Span writes milliseconds: 84 ms, 1.4 s, 3 min 20 s, 2 h 5 min.
func Span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Second:
		return strconv.FormatInt(ms, 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(float64((ms+50)/100)/10, 'f', -1, 64) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min" + unlessZero(int(d.Seconds())%60, " s")
	}
	return strconv.Itoa(int(d.Hours())) + " h" + unlessZero(int(d.Minutes())%60, " min")
}

// unlessZero is what follows a whole number of minutes or hours: nobody says 1 min 0 s.
func unlessZero(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return " " + strconv.Itoa(n) + unit
}

// Weight writes a size in bytes: 900 B, 84 KB, 1.8 MB, 2.5 GB.
func Weight(bytes int64) string {
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

// Plural writes how many there are of what a word names.
func Plural(n int, word string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(word, "s"):
		word += "es"
	default:
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// Requests writes how many requests there were.
func Requests(n int64) string {
	if n == 1 {
		return "1 request"
	}
	return Thousands(n) + " requests"
}

// Title is a word at a beginning.
func Title(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// Dashed is a text, and a dash where there is none.
func Dashed(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// Share is how many hundredths of most an amount is.
func Share(a, most money.Amount) int {
	if most <= 0 {
		return 0
	}
	return int(float64(a) / float64(most) * 100)
}
