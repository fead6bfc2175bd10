package catalog

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
)

// YAML returns the document as YAML in the order of operator.md, Catalog, without defaults and with
// credentials as references. Parse reads it back to the same document.
func (d *Document) YAML() []byte { return tree.YAML(d.tree()) }

// JSON returns the document as indented JSON in the same order. Parse reads the JSON back to the
// same document.
func (d *Document) JSON() []byte { return tree.JSON(d.tree(), "  ") }

// canonical returns the format for storing and comparing revisions.
func (d *Document) canonical() []byte { return tree.JSON(d.tree(), "") }

func (d *Document) tree() *tree.Value {
	models, lines := tree.List(), encode(reflect.ValueOf(d.Lines))
	for i := range d.Models {
		models.Items = append(models.Items, d.Models[i].Tree())
	}
	root := tree.Table()
	root.Set("models", models)
	root.Set("lines", lines)
	return root
}

// Tree returns the model as an entry of a document.
func (m *Model) Tree() *tree.Value {
	n := &tree.Value{Kind: tree.TableKind, Fields: make([]tree.Field, 0, 16)}
	encodeFields(n, reflect.ValueOf(m).Elem(), m.Kind)
	if d := m.Kind.Definition(); d != nil {
		for _, number := range d.Numbers {
			if value, ok := m.Numbers[number.Name]; ok {
				n.Set(number.Name, tree.Number(value))
			}
		}
		for _, list := range d.Lists {
			if words := m.Lists[list.Name]; len(words) > 0 {
				n.Set(list.Name, encode(reflect.ValueOf(words)).Inline())
			}
		}
		for _, flag := range d.Flags {
			if m.Flags[flag] {
				n.Set(flag, tree.Plain("true"))
			}
		}
		n.Set("price", m.Units.Tree().Inline())
	}
	for i := range n.Fields {
		if m.PerClip && n.Fields[i].Name == "price" {
			n.Fields[i].Name = "per_clip"
		}
	}
	return n
}

// encoder is implemented by types with their own format. A nil Tree is left out of the document.
type encoder interface{ Tree() *tree.Value }

// encode returns a value in the format of documents. v must not be a nil pointer or interface.
func encode(v reflect.Value) *tree.Value {
	if v.NumMethod() > 0 {
		switch x := v.Interface().(type) {
		case encoder:
			return x.Tree()
		case time.Duration:
			return tree.Text(formatDuration(x))
		case fmt.Stringer: // prices and factors
			return tree.Plain(x.String())
		}
	}
	n := tree.Table()
	switch v.Kind() {
	case reflect.Interface:
		return encode(v.Elem())
	case reflect.String:
		return tree.Text(v.String())
	case reflect.Bool:
		return tree.Plain(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int64:
		return tree.Number(v.Int())
	case reflect.Float64:
		return tree.Plain(strconv.FormatFloat(v.Float(), floatFormat(v.Float()), -1, 64))
	case reflect.Slice:
		n = tree.List()
		for _, item := range v.Seq2() {
			n.Items = append(n.Items, encode(item))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			n.Set(key.String(), encode(v.MapIndex(key)))
		}
	case reflect.Struct:
		encodeFields(n, v, "")
	default:
		return tree.Text(fmt.Sprint(v))
	}
	return n
}

// floatFormat returns the format 'f' without an exponent, except for tiny numbers.
func floatFormat(v float64) byte {
	if math.Abs(v) < 1e-6 {
		return 'e'
	}
	return 'f'
}

// tag holds a field's struct tags: `key:"name,styles"`, `default:"…"`, and `kinds:"…"`, the kinds
// of models with the key; without this tag, all kinds have the key. The styles are flow, on one line;
// entries, one line for each entry; and empty, printed although empty. Other fields are left out if
// empty or the default.
type tag struct {
	field                       int
	key, style, fallback, kinds string
}

// tags holds the tags of all structs of a document. Never changed.
var tags = map[reflect.Type][]tag{
	reflect.TypeFor[Model]():         tagsOf(reflect.TypeFor[Model]()),
	reflect.TypeFor[ChatPrice]():     tagsOf(reflect.TypeFor[ChatPrice]()),
	reflect.TypeFor[ModalityRates](): tagsOf(reflect.TypeFor[ModalityRates]()),
	reflect.TypeFor[LineSpec]():      tagsOf(reflect.TypeFor[LineSpec]()),
	reflect.TypeFor[Timeouts]():      tagsOf(reflect.TypeFor[Timeouts]()),
}

func tagsOf(t reflect.Type) (all []tag) {
	for field := range t.Fields() {
		if key, style, _ := strings.Cut(field.Tag.Get("key"), ","); key != "" {
			all = append(all, tag{field.Index[0], key, style, field.Tag.Get("default"), field.Tag.Get("kinds")})
		}
	}
	return all
}

// encodeFields adds the fields of a struct to n by their tags. kind is the kind of a model, or
// empty.
func encodeFields(n *tree.Value, v reflect.Value, kind Kind) {
	for _, tag := range tags[v.Type()] {
		field := v.Field(tag.field)
		if tag.kinds != "" && !strings.Contains(tag.kinds, string(kind)) || tag.fallback == "" && isOmitted(field, tag.style) {
			continue
		}
		value := encode(field)
		if value == nil || tag.fallback != "" && value.Text == tag.fallback {
			continue
		}
		switch {
		case strings.Contains(tag.style, "flow"):
			value.Inline()
		case tag.style == "entries":
			for _, f := range value.Fields {
				f.Value.Inline()
			}
		}
		n.Set(tag.key, value)
	}
}

// isOmitted reports whether a field is left out because it is empty.
func isOmitted(v reflect.Value, style string) bool {
	if strings.Contains(style, "empty") {
		return v.Kind() == reflect.Slice && v.IsNil()
	}
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// Tree returns the base rates and the bands, without rates that equal their defaults.
func (p ChatPrice) Tree() *tree.Value {
	n := tree.Table()
	p.Rates.writeTo(n, nil)
	if len(p.Bands) > 0 {
		above := tree.List()
		for _, a := range p.Bands {
			entry := tree.Table()
			entry.Set("prompt_tokens", tree.Number(a.PromptTokens))
			a.Rates.writeTo(entry, &p.Rates)
			above.Items = append(above.Items, entry.Inline())
		}
		n.Set("above", above)
	}
	encodeFields(n, reflect.ValueOf(p), "")
	return n
}

// writeTo adds the rates to n, without those equal to their defaults. base is nil, or the base
// rates of a band.
func (r *Rates) writeTo(n *tree.Value, base *Rates) {
	defaults := r.defaults(base)
	n.Set("input", tree.Plain(r.Input.String()))
	n.Set("output", tree.Plain(r.Output.String()))
	for _, rate := range []struct {
		key             string
		price, fallback money.Price
	}{
		{"cached_input", r.CachedInput, defaults.CachedInput},
		{"cache_write", r.CacheWrite, defaults.CacheWrite},
		{"cache_write_1h", r.CacheWrite1h, defaults.CacheWrite1h},
	} {
		if rate.price != rate.fallback {
			n.Set(rate.key, tree.Plain(rate.price.String()))
		}
	}
}

// Tree returns the prices by tier.
func (tiers Tiers) Tree() *tree.Value {
	n := tree.Table()
	for _, tier := range tiers {
		n.Set(tier.Name, tree.Plain(tier.Price.String()))
	}
	return n
}

// Tree returns a list or a range, or nil.
func (d Durations) Tree() *tree.Value {
	switch {
	case len(d.List) > 0:
		return encode(reflect.ValueOf(d.List))
	case d.Max > 0:
		n := tree.Table()
		n.Set("min", tree.Number(d.Min))
		n.Set("max", tree.Number(d.Max))
		return n
	}
	return nil
}

// Tree returns true and false as booleans, and optional as text.
func (s Sound) Tree() *tree.Value {
	switch s {
	case SoundUnset:
		return nil
	case SoundOptional:
		return tree.Text(string(s))
	}
	return tree.Plain(string(s))
}

// formatDuration formats a duration without the zero parts of time.Duration.String: 2m, not 2m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
