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
	"tollgate/internal/money"
)

// settingsGroup is the group of settings in --help.
const settingsGroup = "settings"

// settingFlags has a flag for each setting of app.AllSettings.
type settingFlags struct {
	list  []app.Setting
	value reflect.Value // pointer to a struct with a *string or *bool for each setting
}

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

// target returns the struct for the parser.
func (f settingFlags) target() any { return f.value.Interface() }

// values returns the values of the flags on the command line by the key of the setting.
func (f settingFlags) values() map[string]string {
	out := make(map[string]string)
	for i, s := range f.list {
		if field := f.value.Elem().Field(i); !field.IsNil() {
			out[s.Key] = fmt.Sprint(field.Elem().Interface())
		}
	}
	return out
}

// set sets flags by name. It ignores unknown names.
func (f settingFlags) set(values map[string]string) {
	for i, s := range f.list {
		if value, ok := values[s.Flag()]; ok && !s.Switch {
			f.value.Elem().Field(i).Set(reflect.ValueOf(&value))
		}
	}
}

// usd is an amount of money on the command line.
type usd struct{ amount money.Amount }

// UnmarshalText reads a decimal number. A plus sign may precede it (see prepareArgs).
func (u *usd) UnmarshalText(text []byte) (err error) {
	u.amount, err = money.ParseTyped(strings.TrimPrefix(string(text), "+"))
	return err
}

// MarshalJSON implements json.Marshaler.
func (u *usd) MarshalJSON() ([]byte, error) { return u.amount.MarshalJSON() }

// negative matches a negative number. The parser would take a negative number for flags.
var negative = regexp.MustCompile(`^-\.?[0-9]`)

// prepareArgs changes a command line for the parser. Negative amounts get a plus sign in
// front, so that `account credit ACCOUNT -5` works; usd removes the sign. A flag without a
// value, at the end or before another flag, is an error, because a script's unset variable
// must not become an empty value or the next flag.
func prepareArgs(node *kong.Node, args []string) ([]string, error) {
	out, flag := slices.Clone(args), ""
	for i, arg := range args {
		name, _, ok := strings.Cut(arg, "=")
		next := (*kong.Flag)(nil)
		if strings.HasPrefix(arg, "--") {
			next = flagOf(node, name)
		}
		switch {
		case arg == "--":
			return out, nil
		case flag != "" && next != nil:
			return nil, fmt.Errorf("%s: its value is missing before %s. If %[2]s is the value, write %s=%s", flag, name, flag, name)
		case flag != "":
			flag = ""
		case next != nil && !next.IsBool() && !ok:
			flag = name
		case negative.MatchString(arg):
			out[i] = "+" + arg
		case !strings.HasPrefix(arg, "-"):
			node = cmp.Or(childOf(node, arg), node)
		}
	}
	if flag != "" {
		return nil, fmt.Errorf("%s: its value is missing. For an empty value, write ''", flag)
	}
	return out, nil
}

// none clears a limit or a list.
const none = "none"

// usdLimit is an amount or none.
type usdLimit struct{ amount *usd }

// UnmarshalText implements encoding.TextUnmarshaler.
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

// UnmarshalText implements encoding.TextUnmarshaler.
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

// UnmarshalText implements encoding.TextUnmarshaler.
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

// jsonNumber is a number that keeps its digits in a JSON body.
type jsonNumber struct{ text string }

// UnmarshalText reads the number. A plus sign may precede it (see prepareArgs).
func (n *jsonNumber) UnmarshalText(text []byte) error {
	n.text = strings.TrimPrefix(string(text), "+")
	var number json.Number
	if strings.HasPrefix(n.text, `"`) || json.Unmarshal([]byte(n.text), &number) != nil || number == "" {
		return errors.New("must be a number")
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (n *jsonNumber) MarshalJSON() ([]byte, error) { return []byte(n.text), nil }

// factors has price factors by model, or none.
type factors struct{ byModel map[string]*jsonNumber }

// UnmarshalText reads MODEL=FACTOR,…. The operator API checks the range of factors.
func (f *factors) UnmarshalText(text []byte) error {
	f.byModel = map[string]*jsonNumber{}
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
		if f.byModel[model] != nil {
			return fmt.Errorf("has two factors for %s", model)
		}
		f.byModel[model] = &factor
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (f *factors) MarshalJSON() ([]byte, error) { return json.Marshal(f.byModel) }

// moment is a UTC day, an RFC 3339 time, or a duration from now.
type moment struct {
	text     string
	duration time.Duration // if not zero, t is unused
	t        time.Time
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *moment) UnmarshalText(text []byte) (err error) {
	*m = moment{text: string(text)}
	if m.duration, err = time.ParseDuration(m.text); err == nil && m.duration > 0 {
		return nil
	}
	m.duration = 0
	if m.t, err = time.Parse(time.RFC3339, m.text); err != nil {
		m.t, err = time.Parse(time.DateOnly, m.text)
	}
	if err != nil {
		return errors.New("must be a UTC day such as 2026-05-31, an RFC 3339 time, or a duration such as 24h")
	}
	return nil
}

// resolve returns the time. A duration counts from now into the future.
func (m *moment) resolve(now time.Time) time.Time {
	if m.duration > 0 {
		return now.Add(m.duration)
	}
	return m.t
}

// param returns the time as a parameter of the operator API, or "" if m is nil. A duration counts
// from now into the past. A day stays a day, because the parameter until includes the whole day.
func (m *moment) param(now time.Time) string {
	switch {
	case m == nil:
		return ""
	case m.duration > 0:
		return now.Add(-m.duration).UTC().Format(time.RFC3339)
	}
	return m.text
}
