package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ConfigEnv names the settings file when no flag does.
const ConfigEnv = "TOLLGATE_CONFIG"

// largestFile bounds the settings file; a real one has a few hundred bytes.
const largestFile = 1 << 20

// Sources are the sources of settings, strongest first.
type Sources struct {
	Flags   map[string]string // by key; only flags on the command line
	Environ map[string]string // by name; an empty variable counts as unset
	File    string            // YAML file; if empty, the file named by ConfigEnv, if any
}

// sourcedValue is the text of a value with its source.
type sourcedValue struct {
	text   string
	source string // place of the value, for messages
}

// byDefault is the source of default values.
const byDefault = "default"

// ReadSettings reads every setting from the strongest source that has it, or uses its default. The
// error is one line with the setting, its source and the reason; it does not contain values of
// secrets.
func ReadSettings(src Sources) (*Settings, error) {
	path := cmp.Or(src.File, src.Environ[ConfigEnv])
	if path == "" {
		return src.settings("", nil)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		var where *fs.PathError
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("config: %w", ExplainPermission(err))
		}
		if errors.As(err, &where) {
			err = where.Err
		}
		return nil, fmt.Errorf("config (%s): %w", path, err)
	}
	return src.settings(path, raw)
}

// settings reads the settings with the content of the settings file at path.
func (src Sources) settings(path string, raw []byte) (*Settings, error) {
	file, err := parseFile(path, raw)
	if err != nil {
		return nil, err
	}
	settings := &Settings{texts: map[string]string{}}
	if path != "" {
		settings.ownFiles = []string{path}
	}
	if settings.Unknown, err = unknownVariables(src.Environ, variables()); err != nil {
		return nil, err
	}
	for _, s := range settings.all() {
		value := src.pick(s, file)
		if value.text == "" && s.Default == "" {
			continue
		}
		if key, isFile := strings.CutSuffix(s.Key, fileSuffix); isFile {
			if secret, _ := settingOf(key); src.pick(secret, file).source != byDefault {
				return nil, fmt.Errorf("%s (%s): %s is set too (%s); set one of them", s.Key, value.source, key, src.pick(secret, file).source)
			}
		}
		if err := s.read(value.text); err != nil {
			not := fmt.Sprintf(", not %q", value.text)
			if _, quoted := errors.AsType[entryError](err); quoted || s.Secret {
				not = ""
			}
			if file, ok := errors.AsType[*fs.PathError](err); ok {
				err, not = permissionError(file.Path, file), ""
			}
			return nil, fmt.Errorf("%s (%s): %w%s", s.Key, value.source, err, not)
		}
		if !s.NamesFile() {
			settings.texts[s.Key] = value.text
		}
	}
	return settings, nil
}

// variables returns the environment variables of all settings.
func variables() []string {
	all := []string{ConfigEnv}
	for _, s := range AllSettings() {
		all = append(all, s.Env())
	}
	return all
}

// pick returns the value of a setting from the strongest source.
func (src Sources) pick(s Setting, file map[string]sourcedValue) sourcedValue {
	if text, ok := src.Flags[s.Key]; ok {
		return sourcedValue{text, "--" + s.Flag()}
	}
	if text := src.Environ[s.Env()]; text != "" {
		return sourcedValue{text, s.Env()}
	}
	if value, ok := file[s.Key]; ok {
		return value
	}
	return sourcedValue{s.Default, byDefault}
}

// parseFile reads a YAML mapping of settings. Unknown and repeated keys, and
// values of the wrong type, are errors with their line.
func parseFile(path string, raw []byte) (map[string]sourcedValue, error) {
	if len(raw) > largestFile {
		return nil, fmt.Errorf("config (%s): the file is larger than %d bytes", path, largestFile)
	}
	doc, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return nil, syntaxFault(path, err)
	}
	out := make(map[string]sourcedValue)
	for i, part := range doc.Docs {
		entries, err := entriesOf(part.Body)
		if err != nil || i > 0 {
			return nil, fmt.Errorf("config (%s): must be one YAML mapping of settings", path)
		}
		for _, entry := range entries {
			where := position(path, entry.Key)
			key, _, _ := textOf(entry.Key, false)
			setting, known := settingOf(key)
			if !known {
				return nil, fmt.Errorf("%s (%s): unknown setting", oneLine(key), where)
			}
			if _, twice := out[key]; twice {
				return nil, fmt.Errorf("%s (%s): set twice", key, where)
			}
			text, set, err := setting.textOf(entry.Value)
			if err != nil {
				return nil, fmt.Errorf("%s (%s): %w", key, where, err)
			}
			if set {
				out[key] = sourcedValue{text, where}
			}
		}
	}
	return out, nil
}

// entriesOf returns the entries of a mapping; an empty document has none.
func entriesOf(node ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := node.(type) {
	case nil, *ast.CommentGroupNode, *ast.NullNode:
		return nil, nil
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	}
	return nil, errors.New("not a mapping")
}

// textOf returns the text of the setting's value in the file.
func (s Setting) textOf(node ast.Node) (string, bool, error) {
	if s.YAML {
		return node.String(), node.Type() != ast.NullType, nil
	}
	return textOf(node, s.List)
}

// textOf returns the text of a scalar, or the entries of a list joined with commas. It returns
// false for null, and the setting stays unset.
func textOf(node ast.Node, list bool) (string, bool, error) {
	if sequence, ok := node.(*ast.SequenceNode); ok {
		if !list {
			return "", false, errors.New("must be one value, not a list")
		}
		var parts []string
		for _, value := range sequence.Values {
			text, set, err := textOf(value, false)
			if err != nil || !set {
				return "", false, errors.New("must be a list of plain values")
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ","), true, nil
	}
	switch n := node.(type) {
	case *ast.NullNode:
		return "", false, nil
	case *ast.StringNode:
		return n.Value, true, nil
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), true, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true, nil
	}
	return "", false, errors.New("must be a plain value")
}

// position returns the position of a node as FILE:LINE:COLUMN.
func position(path string, node ast.Node) string {
	at := node.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", path, at.Line, at.Column)
}

// syntaxFault returns a one-line error for an invalid YAML file.
func syntaxFault(path string, err error) error {
	if fault, ok := errors.AsType[yaml.Error](err); ok {
		at := fault.GetToken().Position
		return fmt.Errorf("config (%s:%d:%d): %s", path, at.Line, at.Column, oneLine(fault.GetMessage()))
	}
	return fmt.Errorf("config (%s): is not valid YAML", path)
}

// oneLine replaces control characters, such as line breaks, with spaces, for messages.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
