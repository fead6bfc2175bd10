package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"tollgate/internal/app"
)

// settingsGroup is where --help lists the settings.
const settingsGroup = "settings"

// settingFlags holds a flag for each setting. The structure is made from the
// settings' own list, so that flags and settings cannot drift apart.
type settingFlags struct {
	list  []app.Setting
	value reflect.Value // pointer to a structure with a *string or *bool for each of list
}

// newSettingFlags makes the flags, none of them given.
func newSettingFlags() settingFlags {
	f := settingFlags{list: app.AllSettings()}
	fields := make([]reflect.StructField, len(f.list))
	for i, s := range f.list {
		kind := reflect.TypeFor[*string]()
		if s.Switch {
			kind = reflect.TypeFor[*bool]()
		}
		help := s.Help
		if s.Default != "" && !s.Switch {
			help += " (default: " + s.Default + ")"
		}
		tag := fmt.Sprintf("name:%q help:%q group:%q placeholder:%q", s.Flag(), help, settingsGroup, "…")
		fields[i] = reflect.StructField{Name: "F" + strconv.Itoa(i), Type: kind, Tag: reflect.StructTag(tag)}
	}
	f.value = reflect.New(reflect.StructOf(fields))
	return f
}

// target is the structure that the parser fills.
func (f settingFlags) target() any { return f.value.Interface() }

// given returns the flags that were on the command line, by key.
func (f settingFlags) given() map[string]string {
	out := make(map[string]string)
	for i, s := range f.list {
		if field := f.value.Elem().Field(i); !field.IsNil() {
			out[s.Key] = fmt.Sprint(field.Elem().Interface())
		}
	}
	return out
}

// take gives settings that were found elsewhere than by the parser the values of their
// flags; other names are none.
func (f settingFlags) take(values map[string]string) {
	for i, s := range f.list {
		if value, given := values[s.Flag()]; given && !s.Switch {
			f.value.Elem().Field(i).Set(reflect.ValueOf(&value))
		}
	}
}

// usd is an amount of money on the command line.
type usd struct{ amount json.Number }

// UnmarshalText reads a decimal number of US dollars; a plus in front is fine.
func (u *usd) UnmarshalText(text []byte) (err error) {
	u.amount, err = app.ReadUSD(strings.TrimPrefix(string(text), "+"))
	return err
}

// MarshalJSON writes the amount as it stands in a body.
func (u *usd) MarshalJSON() ([]byte, error) { return []byte(u.amount), nil }

// negative is a word that the parser would take for short flags.
var negative = regexp.MustCompile(`^-\.?[0-9]`)

// settled is a command line as the parser takes it. A negative amount passes as an
// argument (`account credit ACCOUNT -5`): no flag begins with a digit, so a plus in front,
// which usd takes off again, changes nothing else. A flag that has no value, at the end or
// with another flag behind it, is refused: a variable that a script has not set means
// neither an empty text, which is two quotes, nor that flag.
func settled(node *kong.Node, args []string) ([]string, error) {
	out, flag := slices.Clone(args), ""
	for i, arg := range args {
		name, _, given := strings.Cut(arg, "=")
		known := (*kong.Flag)(nil)
		if strings.HasPrefix(arg, "--") {
			known = flagOf(node, name)
		}
		switch {
		case arg == "--":
			return out, nil
		case flag != "" && known != nil:
			return nil, fmt.Errorf("%s: its value is missing before %s; a value like that is given as %s=%s", flag, name, flag, name)
		case flag != "":
			flag = ""
		case known != nil && !known.IsBool() && !given:
			flag = name
		case negative.MatchString(arg):
			out[i] = "+" + arg
		case !strings.HasPrefix(arg, "-"):
			node = cmp.Or(childOf(node, arg), node)
		}
	}
	if flag != "" {
		return nil, fmt.Errorf("%s: its value is missing; an empty one is given as ''", flag)
	}
	return out, nil
}

// none on the command line clears a limit or a list.
const none = "none"

// usdLimit is an amount or none.
type usdLimit struct{ amount *usd }

// UnmarshalText reads an amount of US dollars, or none.
func (l *usdLimit) UnmarshalText(text []byte) error {
	if string(text) == none {
		l.amount = nil
		return nil
	}
	var u usd
	if err := u.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or none", err)
	}
	l.amount = &u
	return nil
}

// countLimit is a whole number or none.
type countLimit struct{ count *int64 }

// UnmarshalText reads a whole number, or none.
func (l *countLimit) UnmarshalText(text []byte) error {
	if string(text) == none {
		l.count = nil
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return errors.New("must be a whole number, or none")
	}
	l.count = &n
	return nil
}

// words is a list of words separated by commas, or none.
type words struct{ list []string }

// UnmarshalText reads the list.
func (w *words) UnmarshalText(text []byte) error {
	w.list = nil
	if string(text) == none {
		return nil
	}
	w.list = []string{}
	for part := range strings.SplitSeq(string(text), ",") {
		if part = strings.TrimSpace(part); part != "" {
			w.list = append(w.list, part)
		}
	}
	return nil
}

// jsonNumber is a number that goes into a body as it was written.
type jsonNumber struct{ text string }

// UnmarshalText reads the number; a plus in front is fine.
func (n *jsonNumber) UnmarshalText(text []byte) error {
	n.text = strings.TrimPrefix(string(text), "+")
	var number json.Number
	if strings.HasPrefix(n.text, `"`) || json.Unmarshal([]byte(n.text), &number) != nil || number == "" {
		return errors.New("must be a number")
	}
	return nil
}

// MarshalJSON writes the number as it was read.
func (n *jsonNumber) MarshalJSON() ([]byte, error) { return []byte(n.text), nil }

// factors are factors of prices by model, or none.
type factors struct{ of map[string]*jsonNumber }

// UnmarshalText reads MODEL=FACTOR, each after a comma. What a factor can be, the
// operator API says.
func (f *factors) UnmarshalText(text []byte) error {
	f.of = map[string]*jsonNumber{}
	if string(text) == none {
		return nil
	}
	for part := range strings.SplitSeq(string(text), ",") {
		i := strings.LastIndex(part, "=")
		var factor jsonNumber
		if i < 1 || factor.UnmarshalText([]byte(strings.TrimSpace(part[i+1:]))) != nil {
			return errors.New("must be MODEL=FACTOR, separated by commas, or none")
		}
		model := strings.TrimSpace(part[:i])
		if f.of[model] != nil {
			return fmt.Errorf("names %s twice", model)
		}
		f.of[model] = &factor
	}
	return nil
}

// MarshalJSON writes the factors as they stand in a body.
func (f *factors) MarshalJSON() ([]byte, error) { return json.Marshal(f.of) }

// moment is a time as people say it: a UTC day, an RFC 3339 time, or a span from now
// as a Go duration.
type moment struct {
	text string
	span time.Duration // from now; 0: at is the time
	at   time.Time
}

// UnmarshalText reads the time.
func (m *moment) UnmarshalText(text []byte) (err error) {
	*m = moment{text: string(text)}
	if m.span, err = time.ParseDuration(m.text); err == nil && m.span > 0 {
		return nil
	}
	m.span = 0
	if m.at, err = time.Parse(time.RFC3339, m.text); err != nil {
		m.at, err = time.Parse(time.DateOnly, m.text)
	}
	if err != nil {
		return errors.New("must be a UTC day such as 2026-05-31, an RFC 3339 time, or a duration such as 24h")
	}
	return nil
}

// ahead is the time, a span counting from now on.
func (m *moment) ahead(now time.Time) time.Time {
	if m.span > 0 {
		return now.Add(m.span)
	}
	return m.at
}

// ago is the time as the operator API takes it in a list's span, a span counting back
// from now; nil is none. A day stays one, since a list ends with the day that it names.
func (m *moment) ago(now time.Time) string {
	switch {
	case m == nil:
		return ""
	case m.span > 0:
		return now.Add(-m.span).UTC().Format(time.RFC3339)
	}
	return m.text
}
