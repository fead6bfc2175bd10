package tree

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a tree. An alias counts each time it is used, so a few lines cannot stand for a billion
// values.
const (
	maxDepth  = 32
	maxValues = 500_000
)

// readYAML builds the tree of one YAML document. Its errors are *SyntaxError. Anchors, aliases and
// merge keys work. Tags and directives are rejected, because catalogs do not need them.
func readYAML(raw []byte) (n *Value, err error) {
	defer func() {
		// Anybody may upload text. A defect in the parser must reject the document and not crash
		// the gateway.
		if p := recover(); p != nil {
			n, err = nil, syntaxError(Position{1, 1}, "cannot be read as YAML: %v", p)
		}
	}()
	tokens := lexer.Tokenize(string(raw))
	if err := checkShape(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, parserError(err)
	}
	r := yamlReader{anchors: map[string]*Value{}}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentGroupType {
			continue
		}
		if n != nil {
			return nil, syntaxError(position(doc.Body), "must be one document, not several separated by ---")
		}
		if n, err = r.value(doc.Body, 1); err != nil {
			return nil, err
		}
	}
	if n == nil {
		return nil, &SyntaxError{Message: "is empty: a catalog must have the keys models and lines"}
	}
	return n, nil
}

// checkShape bounds the nesting before the recursive parser runs.
func checkShape(tokens token.Tokens) error {
	flowDepth, openings := 0, 0
	for _, tk := range tokens {
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			flowDepth++
		case token.SequenceEndType, token.MappingEndType:
			flowDepth--
		case token.TagType, token.DirectiveType:
			return syntaxError(Position{tk.Position.Line, tk.Position.Column}, "tags and directives are not allowed")
		}
		// Consecutive openings on one line nest: `- - - x`, `&a &b x`.
		switch tk.Type {
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.MappingValueType:
			if tk.Prev != nil && tk.Prev.Position.Line != tk.Position.Line {
				openings = 0
			}
			openings++
		case token.CollectEntryType:
			openings = 0
		}
		// Each level of block nesting takes at least one column.
		structural := tk.Type == token.SequenceEntryType || tk.Type == token.MappingKeyType
		if flowDepth > maxDepth || openings > 8*maxDepth || (structural && tk.Position.Column > 8*maxDepth) {
			return syntaxError(Position{tk.Position.Line, tk.Position.Column}, "is nested deeper than %d levels", maxDepth)
		}
	}
	return nil
}

// parserError converts an error of the parser to a *SyntaxError with its position.
func parserError(err error) error {
	if syntax, ok := errors.AsType[yaml.Error](err); ok && syntax.GetToken() != nil && syntax.GetToken().Position != nil {
		pos := syntax.GetToken().Position
		return syntaxError(Position{max(1, pos.Line), max(1, pos.Column)}, "is not valid YAML: %s", syntax.GetMessage())
	}
	return syntaxError(Position{1, 1}, "is not valid YAML: %s", strings.SplitN(err.Error(), "\n", 2)[0])
}

// position returns the position of a node in the text, or the beginning if the node has none.
func position(n ast.Node) Position {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return Position{1, 1}
	}
	pos := n.GetToken().Position
	return Position{max(1, pos.Line), max(1, pos.Column)}
}

// yamlReader converts the nodes of the parser to values.
type yamlReader struct {
	anchors map[string]*Value
	values  int // read so far; an alias counts with all values in it
}

// value converts a node of the parser at a nesting depth.
func (r *yamlReader) value(a ast.Node, depth int) (*Value, error) {
	pos := position(a)
	if depth > maxDepth {
		return nil, syntaxError(pos, "is nested deeper than %d levels", maxDepth)
	}
	if r.values++; r.values > maxValues {
		return nil, syntaxError(pos, "has more than %d values", maxValues)
	}
	n := &Value{Pos: pos, size: 1}
	switch v := a.(type) {
	case nil, *ast.NullNode:
	case *ast.StringNode:
		n.Kind, n.Text = PlainKind, v.Value
		if v.Token.Type != token.StringType {
			n.Kind = QuotedKind
		}
	case *ast.LiteralNode:
		n.Kind, n.Text = QuotedKind, v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.Kind, n.Text = PlainKind, a.GetToken().Value
	case *ast.SequenceNode:
		n.Kind = ListKind
		for _, item := range v.Values {
			child, err := r.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, child)
			n.size += child.size
		}
	case *ast.MappingNode:
		return r.table(n, v.Values, depth)
	case *ast.MappingValueNode:
		return r.table(n, []*ast.MappingValueNode{v}, depth)
	case *ast.AnchorNode:
		child, err := r.value(v.Value, depth+1)
		if err != nil {
			return nil, err
		}
		r.anchors[v.Name.GetToken().Value] = child
		return child, nil
	case *ast.AliasNode:
		return r.alias(v)
	default:
		return nil, syntaxError(pos, "contains YAML that a catalog does not support (%s)", a.Type())
	}
	return n, nil
}

// alias returns the value of an earlier anchor, and counts all values in it.
func (r *yamlReader) alias(v *ast.AliasNode) (*Value, error) {
	name := v.Value.GetToken().Value
	target, ok := r.anchors[name]
	if !ok {
		return nil, syntaxError(position(v), "refers to the anchor %q, but no earlier value has this anchor", name)
	}
	if r.values += target.size; r.values > maxValues {
		return nil, syntaxError(position(v), "has more than %d values", maxValues)
	}
	return target, nil
}

// table reads a mapping. The mapping's own keys replace keys merged with `<<`, and an earlier merge
// replaces a later one. Merged keys are inserted at the place of their `<<`, because the order of
// resolution tiers has a meaning.
func (r *yamlReader) table(n *Value, values []*ast.MappingValueNode, depth int) (*Value, error) {
	n.Kind = TableKind
	keys, ownKeys := make([]string, len(values)), map[string]bool{}
	for i, entry := range values {
		if entry.Key.IsMergeKey() {
			continue
		}
		key, err := r.key(entry.Key)
		if err != nil {
			return nil, err
		}
		keys[i], ownKeys[key] = key, true
	}
	for i, entry := range values {
		value, err := r.value(entry.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if !entry.Key.IsMergeKey() {
			n.add(Field{Name: keys[i], Pos: position(entry.Key), Value: value})
			continue
		}
		merged, err := mergeable(value)
		if err != nil {
			return nil, err
		}
		for _, f := range merged {
			if !ownKeys[f.Name] {
				ownKeys[f.Name] = true
				n.add(f)
			}
		}
	}
	return n, nil
}

// add appends a field and counts it.
func (v *Value) add(f Field) {
	v.Fields = append(v.Fields, f)
	v.size += 1 + f.Value.size
}

// mergeable returns the fields merged with `<<`, from a mapping or a list of mappings.
func mergeable(value *Value) ([]Field, error) {
	switch value.Kind {
	case TableKind:
		return value.Fields, nil
	case ListKind:
		var all []Field
		for _, item := range value.Items {
			if item.Kind != TableKind {
				return nil, syntaxError(item.Pos, "<< accepts mappings only")
			}
			all = append(all, item.Fields...)
		}
		return all, nil
	}
	return nil, syntaxError(value.Pos, "<< accepts a mapping or a list of mappings only")
}

// key returns the text of a mapping's key. The key must be a scalar.
func (r *yamlReader) key(k ast.MapKeyNode) (string, error) {
	switch v := ast.Node(k).(type) {
	case *ast.StringNode:
		return v.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return k.GetToken().Value, nil
	case *ast.MappingKeyNode:
		if inner, ok := v.Value.(ast.MapKeyNode); ok {
			return r.key(inner)
		}
	}
	return "", syntaxError(position(k), "a key must be plain text, not %s", k.Type())
}
