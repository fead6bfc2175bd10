// Package secret owns the values of a catalog's references to variables and files on a node.
// Invariant: no error or message contains a value.
package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// Bounds of references and of their files, in bytes.
const (
	MaxReference = 1100
	maxFile      = 64 << 10
)

// reference matches a valid reference to a variable or a file.
var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]{0,127}|file:[^${}]{1,1000})\}$`)

// IsReference reports whether text is a reference to a variable or a file.
func IsReference(text string) bool { return reference.MatchString(text) }

// Resolve returns the value of a variable, or of a file if name begins with "file:", without
// surrounding white space. If there is no value, reason says why.
func Resolve(name string, lookup func(string) (string, bool)) (value, reason string) {
	path, isFile := strings.CutPrefix(name, "file:")
	if !isFile {
		value, _ = lookup(name)
		if value = strings.TrimSpace(value); value == "" {
			return "", fmt.Sprintf("the variable %s is not set on this node", name)
		}
		return value, ""
	}
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Sprintf("the file %s cannot be read on this node: it belongs to another user, or its mode forbids it", path)
	case err != nil:
		return "", fmt.Sprintf("the file %s cannot be read on this node", path)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch value = strings.TrimSpace(string(raw)); {
	case err != nil:
		return "", fmt.Sprintf("the file %s cannot be read on this node", path)
	case len(raw) > maxFile:
		return "", fmt.Sprintf("the file %s has more than %d bytes, which is too long for a secret", path, maxFile)
	case value == "":
		return "", fmt.Sprintf("the file %s is empty on this node", path)
	}
	return value, ""
}
