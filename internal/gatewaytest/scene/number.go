package scene

import (
	"os"
	"strconv"
	"testing"
)

// Number returns the environment variable name as a number, or fallback if the variable is not set.
// A number below minimum fails the test.
func Number(t testing.TB, name string, fallback, minimum int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < minimum {
		t.Fatalf("%s is %q", name, text)
	}
	return n
}
