package catalog

import "strconv"

// node is a piece of a document's text, the same whether it was YAML or JSON.
// Scalars keep their text, so that prices are read exactly. A tree is not
// changed once it is built: aliases share nodes.
type node struct {
	kind   nodeKind
	text   string  // of a plain or quoted scalar
	items  []*node // of a list
	fields []field // of a table, in the order of the text
	size   int     // nodes in this tree, aliases counted as often as they appear
	at     position
	flow   bool // print on one line
}

// field is one key of a table.
type field struct {
	name  string
	at    position
	value *node
}

type nodeKind uint8

const (
	nullNode   nodeKind = iota
	plainNode           // a scalar without quotes: number, boolean or text
	quotedNode          // a scalar that can only be text
	listNode
	tableNode
)

func (k nodeKind) String() string {
	switch k {
	case nullNode:
		return "nothing"
	case listNode:
		return "a list"
	case tableNode:
		return "a mapping"
	}
	return "a single value"
}

// get returns the value of a key, nil when there is none or it is null.
func (n *node) get(name string) *node {
	for _, f := range n.fields {
		if f.name == name && f.value.kind != nullNode {
			return f.value
		}
	}
	return nil
}

// Builders for printing.

func plain(text string) *node  { return &node{kind: plainNode, text: text} }
func quoted(text string) *node { return &node{kind: quotedNode, text: text} }
func number(n int64) *node     { return plain(strconv.FormatInt(n, 10)) }
func list(items ...*node) *node {
	return &node{kind: listNode, items: items}
}

// set appends a key.
func (n *node) set(name string, value *node) {
	n.fields = append(n.fields, field{name: name, value: value})
}

// inline marks a node to be printed on one line.
func (n *node) inline() *node {
	n.flow = true
	return n
}
