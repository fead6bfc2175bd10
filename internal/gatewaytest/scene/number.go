package scene

import (
	"os"
	"strconv"
	"testing"
)

// Number reads a whole number, no smaller than least, from the environment: a
// setting of a test. Otherwise is what it is where the variable is not set.
func Number(t testing.TB, name string, otherwise, least int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		t.Fatalf("%s is %q", name, text)
	}
	return n
}
