package scene

import (
	"os"
	"strconv"
	"testing"
)

// Number reads a whole number of at least least from the environment. If the variable is not set,
// it returns otherwise.
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
