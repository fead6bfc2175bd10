// Package secret owns the values of a catalog's references to variables, files and stored secrets on a
// node. Package vault stores the secrets.
// Invariant: no error or message contains a value.
package secret

import (
	"cmp"
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

// storedPrefix begins the name of a stored secret in a reference.
const storedPrefix = "secret:"

// reference matches a valid reference to a variable, a file or a stored secret.
var (
	reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]{0,127}|file:[^${}]{1,1000}|secret:` + secretName + `)\}$`)
	name      = regexp.MustCompile(`^` + secretName + `$`)
)

// secretName is the pattern of the names of stored secrets, the same as of the IDs of lines.
const secretName = `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`

// IsReference reports whether text is a reference to a variable, a file or a stored secret.
func IsReference(text string) bool { return reference.MatchString(text) }

// IsName reports whether text can be the name of a stored secret.
func IsName(text string) bool { return name.MatchString(text) }

// ReferenceTo returns the reference to a stored secret.
func ReferenceTo(name string) string { return "${" + storedPrefix + name + "}" }

// StoredName returns the name of the stored secret in a reference, or "" for other references.
func StoredName(reference string) string {
	name, ok := strings.CutPrefix(reference, "${"+storedPrefix)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, "}")
}

// Lookup returns lookup with the stored secrets added. stored returns the value of a secret, or the
// reason for its absence and false.
func Lookup(lookup, stored func(name string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if secret, ok := strings.CutPrefix(name, storedPrefix); ok {
			return stored(secret)
		}
		return lookup(name)
	}
}

// Resolve returns the value of a variable, of a file if name begins with "file:", or of a stored
// secret if name begins with "secret:", without surrounding white space. If there is no value, reason
// says why. For a stored secret, lookup returns the value, or the reason and false. For a file, lookup returns true
// and the reason if the file must not be read.
func Resolve(name string, lookup func(string) (string, bool)) (value, reason string) {
	if strings.HasPrefix(name, storedPrefix) {
		value, ok := lookup(name)
		if !ok {
			return "", cmp.Or(value, "stored secrets cannot be read here")
		}
		return value, ""
	}
	path, isFile := strings.CutPrefix(name, "file:")
	if !isFile {
		value, _ = lookup(name)
		if value = strings.TrimSpace(value); value == "" {
			return "", fmt.Sprintf("the variable %s is not set on this node", name)
		}
		return value, ""
	}
	if reason, refused := lookup(name); refused {
		return "", fmt.Sprintf("the file %s cannot be used: %s", path, reason)
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
