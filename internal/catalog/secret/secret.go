// Package secret owns what the references of a catalog stand for on a node: variables
// and files. Invariant: a value is never in what it says.
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

// Bounds of references and of the files that they name, in bytes.
const (
	MaxReference = 1100
	maxFile      = 64 << 10
)

// reference is what api_key may be: the name of a variable or a file, never a
// value.
var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]{0,127}|file:[^${}]{1,1000})\}$`)

// IsReference tells whether a text names a variable or a file, and holds no value.
func IsReference(text string) bool { return reference.MatchString(text) }

// Resolve returns what a reference's name stands for on this node, without the
// white space around it, or why it stands for nothing. Files are read anew with
// each revision of the catalog, and when the operator asks for it.
func Resolve(name string, lookup func(string) (string, bool)) (value, why string) {
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
		return "", fmt.Sprintf("the file %s has more than %d bytes, so it is no secret", path, maxFile)
	case value == "":
		return "", fmt.Sprintf("the file %s is empty on this node", path)
	}
	return value, ""
}
