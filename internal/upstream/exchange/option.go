package exchange

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// CheckTexts returns an error if an option is unknown or not a non-empty string. allowed maps each
// option's name to the check of the value; a nil check allows any value. The error names the option.
func CheckTexts(options map[string]any, provider string, allowed map[string]func(string) error) error {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		check, known := allowed[name]
		if !known {
			return fmt.Errorf("%s: unknown option. The options of provider %s are %s", name, provider,
				strings.Join(slices.Sorted(maps.Keys(allowed)), ", "))
		}
		value, ok := options[name].(string)
		if !ok || value == "" {
			return fmt.Errorf("%s: must be text, and must not be empty", name)
		}
		if check == nil {
			continue
		}
		if err := check(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// TextOption returns an option checked by CheckTexts, or fallback if the option is missing.
func TextOption(options map[string]any, name, fallback string) string {
	if value, ok := options[name].(string); ok && value != "" {
		return value
	}
	return fallback
}

// OneOf returns a check for CheckTexts that accepts only the given values.
func OneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

// CheckWord is a check for CheckTexts. It accepts values that can be part of an address or host name.
func CheckWord(value string) error {
	if !IsSafe(value, "-_.:") {
		return fmt.Errorf("must contain only letters, digits, : . _ and -, and not only dots")
	}
	return nil
}

// CheckAddress is a check for CheckTexts that accepts an https address.
func CheckAddress(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("must be an https address")
	}
	return nil
}

// AddPath adds path to base if base has no path.
func AddPath(base, path string) string {
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		return strings.TrimRight(base, "/") + path
	}
	return base
}
