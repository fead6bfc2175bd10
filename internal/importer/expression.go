package importer

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode"
)

// Newer versions of new-api price a model by an expression in place of ratios: US dollars
// a million tokens of each kind, in steps by the length of the prompt. What is more than
// that (conditions on the request, prices by the request, of images or of sound) has no
// place here.

// What is said of expressions that cannot be carried over.
var (
	errNotByToken = errors.New("it is more than US dollars a token by the length of the prompt")
	errTooDeep    = errors.New("it has too many steps")
)

// Bounds of what is read.
const (
	maxExpression = 8 << 10
	maxSteps      = 16
)

// expressionsOf returns the expressions of the models that are priced by one.
func expressionsOf(settings map[string]string) map[string]string {
	var modes, texts map[string]string
	_ = json.Unmarshal([]byte(settings["billing_setting.billing_mode"]), &modes) // what cannot be read prices nothing
	_ = json.Unmarshal([]byte(settings["billing_setting.billing_expr"]), &texts)
	out := map[string]string{}
	for model, mode := range modes {
		if mode == "tiered_expr" {
			out[model] = texts[model]
		}
	}
	return out
}

// priceStep is the price of prompts of more than so many tokens.
type priceStep struct {
	above int64
	rates rates
}

// readExpression returns the rates that an expression stands for.
func readExpression(text string) (rates, error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "v1:")
	if len(text) > maxExpression {
		return rates{}, errTooDeep
	}
	p := expressionReader{left: symbols(text)}
	var steps []priceStep
	if err := p.price(&steps, -1, math.MaxInt64); err != nil {
		return rates{}, err
	}
	if len(p.left) > 0 || len(steps) == 0 {
		return rates{}, errNotByToken
	}
	slices.SortFunc(steps, func(a, b priceStep) int { return cmp.Compare(a.above, b.above) })
	out := steps[0].rates
	for _, s := range steps[1:] {
		out.above = append(out.above, ratesAbove{tokens: s.above, input: s.rates.input, output: s.rates.output,
			cached: s.rates.cached, written: s.rates.written, written1h: s.rates.written1h})
	}
	return out, nil
}

// symbols splits an expression into names, numbers, texts and signs.
func symbols(text string) (all []string) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		n := 1
		switch first := rune(text[0]); {
		case first == '"':
			if end := strings.IndexByte(text[1:], '"'); end >= 0 {
				n = end + 2
			}
		case first == '_' || first < unicode.MaxASCII && (unicode.IsLetter(first) || unicode.IsDigit(first)):
			n = len(text) - len(strings.TrimLeftFunc(text, func(r rune) bool {
				return r == '_' || r == '.' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
			}))
		case strings.HasPrefix(text, "<=") || strings.HasPrefix(text, ">="):
			n = 2
		}
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

// expressionReader reads an expression from the left.
type expressionReader struct {
	left  []string
	depth int
}

// take takes the next words if they are these.
func (p *expressionReader) take(these ...string) bool {
	if len(p.left) < len(these) || !slices.Equal(p.left[:len(these)], these) {
		return false
	}
	p.left = p.left[len(these):]
	return true
}

// next takes a word; empty: there is none.
func (p *expressionReader) next() (word string) {
	if len(p.left) > 0 {
		word, p.left = p.left[0], p.left[1:]
	}
	return word
}

// price reads what prompts of more than `above` tokens, and of `most` at most, cost.
func (p *expressionReader) price(steps *[]priceStep, above, most int64) error {
	if p.depth++; p.depth > 4*maxSteps || len(*steps) > maxSteps {
		return errTooDeep
	}
	if p.take("len") {
		sign, limit := p.next(), number(p.next())
		if limit == nil || !limit.IsInt() || !limit.Num().IsInt64() || limit.Sign() <= 0 || !p.take("?") {
			return errNotByToken
		}
		n := limit.Num().Int64()
		switch sign {
		case "<", ">=":
			n--
		case "<=", ">":
		default:
			return errNotByToken
		}
		below := func() error { return p.price(steps, above, min(most, n)) }
		beyond := func() error { return p.price(steps, max(above, n), most) }
		first, second := below, beyond
		if strings.HasPrefix(sign, ">") {
			first, second = beyond, below
		}
		if err := first(); err != nil {
			return err
		}
		if !p.take(":") {
			return errNotByToken
		}
		return second()
	}
	inTier := p.take("tier", "(")
	if inTier && (!strings.HasPrefix(p.next(), `"`) || !p.take(",")) {
		return errNotByToken
	}
	if !inTier && p.take("(") {
		if err := p.price(steps, above, most); err != nil {
			return err
		}
		if !p.take(")") {
			return errNotByToken
		}
		return nil
	}
	r, err := p.sum()
	if err != nil || inTier && !p.take(")") {
		return errNotByToken
	}
	if above < most { // else no prompt is as long as that
		*steps = append(*steps, priceStep{above, r})
	}
	return nil
}

// sum reads `p * 3 + c * 15 + cr * 0.3`. Tokens of a kind that it does not name are among
// those of the prompt.
func (p *expressionReader) sum() (rates, error) {
	said := map[string]*big.Rat{}
	for {
		name, usd := p.factor(), p.next()
		if usd != "*" {
			return rates{}, errNotByToken
		}
		usd = p.factor()
		if number(name) != nil {
			name, usd = usd, name
		}
		n := number(usd)
		if n == nil || n.Sign() < 0 || said[name] != nil {
			return rates{}, errNotByToken
		}
		said[name] = n
		if !p.take("+") {
			break
		}
	}
	out := rates{input: whole(0), output: whole(0)}
	for name, usd := range said {
		switch name {
		case "p":
			out.input = usd
		case "c":
			out.output = usd
		case "cr":
			out.cached = usd
		case "cc":
			out.written = usd
		case "cc1h":
			out.written1h = usd
		default:
			return rates{}, errNotByToken
		}
	}
	for _, unsaid := range []**big.Rat{&out.cached, &out.written, &out.written1h} {
		if *unsaid == nil {
			*unsaid = out.input
		}
	}
	return out, nil
}

// factor reads a name or a number, which may stand in brackets.
func (p *expressionReader) factor() string {
	if !p.take("(") {
		return p.next()
	}
	word := p.next()
	if !p.take(")") {
		return ""
	}
	return word
}
