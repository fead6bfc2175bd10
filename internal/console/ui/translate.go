package ui

import (
	"regexp"
	"strings"
	"text/template/parse"
	"unicode"
)

// markup is a position in the markup of a template.
type markup struct {
	tag       bool   // the position is inside a tag
	attribute string // name of the attribute if the position is inside its value
	element   string // name of the last tag before the position, with a slash for an end tag
}

// markupPart matches the parts of markup that may change the position: the beginning and the end of a tag, the
// beginning of an attribute's value, and a quote.
var markupPart = regexp.MustCompile(`<!?(/?[a-zA-Z0-9]+)|>|([a-z-]+)="|"`)

// shownAttributes are the attributes with a text for people.
var shownAttributes = map[string]bool{"aria-label": true, "alt": true, "placeholder": true, "title": true}

// codeElements are the elements whose text is the same in all languages.
var codeElements = map[string]bool{"code": true, "kbd": true, "pre": true}

// shown reports whether a text at the position is for people, and so has a translation.
func (m markup) shown() bool {
	if m.tag {
		return shownAttributes[m.attribute]
	}
	return !codeElements[m.element]
}

// after returns the position after a part.
func (m markup) after(part, element, attribute string) markup {
	switch {
	case m.attribute != "":
		if part == `"` {
			m.attribute = ""
		}
	case part == ">":
		m.tag = false
	case m.tag && attribute != "":
		m.attribute = attribute
	case !m.tag && element != "":
		m.tag, m.element = true, element
	}
	return m
}

// eachText calls replace for each text for people. The markup in text begins at the position m. eachText
// returns the markup with the replaced texts, and the position at its end.
func (m markup) eachText(text string, replace func(string) string) (string, markup) {
	var out strings.Builder
	translate := func(piece string) {
		if m.shown() {
			piece = replaceInner(piece, replace)
		}
		out.WriteString(piece)
	}
	at := 0 // the end of the last part
	for _, found := range markupPart.FindAllStringSubmatchIndex(text, -1) {
		part, next := text[found[0]:found[1]], m.after(text[found[0]:found[1]], group(text, found[2:4]), group(text, found[4:6]))
		if next == m {
			continue // the part belongs to a text
		}
		translate(text[at:found[0]])
		out.WriteString(part)
		m, at = next, found[1]
	}
	translate(text[at:])
	return out.String(), m
}

func group(text string, bounds []int) string {
	if bounds[0] < 0 {
		return ""
	}
	return text[bounds[0]:bounds[1]]
}

// replaceInner replaces a text and keeps the space around it. It returns a text without a letter unchanged.
func replaceInner(text string, replace func(string) string) string {
	inner := strings.TrimSpace(text)
	if !strings.ContainsFunc(inner, unicode.IsLetter) {
		return text
	}
	before, after, _ := strings.Cut(text, inner)
	return before + replace(inner) + after
}

// EachText replaces the texts for people in a template. It also adds the function words to each action that
// writes a value.
func EachText(tree *parse.Tree, replace func(string) string) {
	translator{tree, replace}.list(tree.Root, markup{})
}

// translator changes a template.
type translator struct {
	tree    *parse.Tree
	replace func(string) string
}

// list changes the nodes of a list. The list begins at the position m, and list returns the position at its
// end.
func (t translator) list(l *parse.ListNode, m markup) markup {
	if l == nil {
		return m
	}
	for _, node := range l.Nodes {
		m = t.node(node, m)
	}
	return m
}

func (t translator) node(node parse.Node, m markup) markup {
	switch n := node.(type) {
	case *parse.TextNode:
		var text string
		text, m = m.eachText(string(n.Text), t.replace)
		n.Text = []byte(text)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			words := &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier("words").SetTree(t.tree)}}
			n.Pipe.Cmds = append(n.Pipe.Cmds, words)
		}
	case *parse.IfNode:
		return t.branch(&n.BranchNode, m)
	case *parse.RangeNode:
		return t.branch(&n.BranchNode, m)
	case *parse.WithNode:
		return t.branch(&n.BranchNode, m)
	}
	return m
}

// branch changes both lists of a branch. Both end at the same position of the markup, because html/template
// requires it.
func (t translator) branch(b *parse.BranchNode, m markup) markup {
	t.list(b.ElseList, m)
	return t.list(b.List, m)
}
