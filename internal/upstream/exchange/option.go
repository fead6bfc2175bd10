package exchange

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Texts checks that all options are known and non-empty strings. allowed maps the name of each
// option to the check of its value; nil allows any value. The error names the option.
func Texts(options map[string]any, provider string, allowed map[string]func(string) error) error {
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

// Text returns an option checked by Texts, or fallback if the option is missing.
func Text(options map[string]any, name, fallback string) string {
	if value, ok := options[name].(string); ok && value != "" {
		return value
	}
	return fallback
}

// OneOf returns a check for Texts that accepts only the given values.
func OneOf(values ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("must be one of %s", strings.Join(values, ", "))
		}
		return nil
	}
}

// Word is a check for Texts. It accepts a value that can be part of an address or a host name.
func Word(value string) error {
	if !Safe(value, "-_.:") {
		return fmt.Errorf("must contain only letters, digits, : . _ and -, and not only dots")
	}
	return nil
}

// Address is a check for Texts that accepts an https address.
func Address(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("must be an https address")
	}
	return nil
}

// Below adds path to a base address that has no path.
func Below(base, path string) string {
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		return strings.TrimRight(base, "/") + path
	}
	return base
}
