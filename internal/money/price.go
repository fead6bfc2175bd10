package money

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// Price is a price in nano-dollars for a million units (tokens), or for one unit (an image, a tool
// call), depending on the catalog's field.
type Price int64

// Factor is a multiplier in millionths: 2.5 is 2_500_000.
type Factor int64

// One is the neutral factor.
const One Factor = 1_000_000

// Largest values in a catalog. With at most 2^40 units, every product fits into 128 bits and every
// sum into an Amount.
const (
	MaxPrice  = Price(100_000 * USD)
	MaxFactor = 1000 * One
)

var (
	// ErrPrice reports a text that is not a price.
	ErrPrice = errors.New("must be a decimal number of US dollars from 0 to 100000 with at most 9 decimals")
	// ErrFactor reports a text that is not a factor.
	ErrFactor = errors.New("must be a decimal number from 0 to 1000 with at most 6 decimals")
)

// ParsePrice parses a decimal number of US dollars, which must not be negative.
func ParsePrice(s string) (Price, error) {
	n, err := parseScaled(s, 9)
	if err != nil || n < 0 || n > int64(MaxPrice) {
		return 0, ErrPrice
	}
	return Price(n), nil
}

// String returns the exact price in US dollars.
func (p Price) String() string { return formatScaled(int64(p), 9) }

// Proportion returns p x numerator / denominator, rounded half up and at most MaxPrice. If
// denominator is zero, it returns numerator.
func (p Price) Proportion(numerator, denominator Price) Price {
	if denominator <= 0 {
		return numerator
	}
	hi, lo := bits.Mul64(uint64(p), uint64(numerator))
	lo, carry := bits.Add64(lo, uint64(denominator)/2, 0)
	if hi += carry; hi >= uint64(denominator) {
		return MaxPrice
	}
	quotient, _ := bits.Div64(hi, lo, uint64(denominator))
	return Price(min(quotient, uint64(MaxPrice)))
}

// Times returns the exact price times a factor in US dollars, with up to 15 decimals.
func (p Price) Times(factor Factor) string {
	product := new(big.Int).Mul(big.NewInt(int64(p)), big.NewInt(int64(factor)))
	whole, part := product.QuoRem(product, big.NewInt(1_000_000_000_000_000), new(big.Int))
	decimals := strings.TrimRight(fmt.Sprintf(".%015d", part), "0")
	return whole.String() + strings.TrimSuffix(decimals, ".")
}

// MarshalJSON writes the price as a JSON number of US dollars.
func (p Price) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalJSON reads a JSON number or string of US dollars.
func (p *Price) UnmarshalJSON(raw []byte) error {
	text, err := plain(raw)
	if err != nil {
		return ErrPrice
	}
	*p, err = ParsePrice(text)
	return err
}

// ParseFactor reads a decimal factor.
func ParseFactor(s string) (Factor, error) {
	n, err := parseScaled(s, 6)
	if err != nil || n < 0 || n > int64(MaxFactor) {
		return 0, ErrFactor
	}
	return Factor(n), nil
}

// String returns the factor as an exact decimal.
func (f Factor) String() string { return formatScaled(int64(f), 6) }

// MarshalJSON writes the factor as a JSON number.
func (f Factor) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalJSON reads a JSON number or string.
func (f *Factor) UnmarshalJSON(raw []byte) error {
	text, err := plain(raw)
	if err != nil {
		return ErrFactor
	}
	*f, err = ParseFactor(text)
	return err
}

// plain returns the text of a JSON number or string.
func plain(raw []byte) (string, error) {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	return string(raw), nil
}

// Sum adds up a bill in 128 bits and rounds it once at the end. The zero value is an empty bill. A
// bill too large for an Amount becomes math.MaxInt64, above every possible hold, so a request
// without a representable bill never runs.
type Sum struct {
	hi, lo uint64 // nano-dollars x 10^12
	over   bool
}

// Tokens adds the price of units, at a price for a million units, times a factor.
func (s *Sum) Tokens(units int64, perMillion Price, factor Factor) {
	s.add(units, perMillion, factor, 1, 1)
}

// Per adds the price of units, at a price for a number of units.
func (s *Sum) Per(units int64, price Price, per int64) {
	s.add(units, price, One, 1_000_000, uint64(per))
}

// Each adds the price of units, at a price for one unit, times a factor.
func (s *Sum) Each(units int64, perUnit Price, factor Factor) {
	s.add(units, perUnit, factor, 1_000_000, 1)
}

// add adds units x price x factor x scale / per. The division loses less than 10^-12 nano-dollars.
func (s *Sum) add(units int64, price Price, factor Factor, scale, per uint64) {
	if units <= 0 || price <= 0 || factor <= 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(units), uint64(price))
	for _, by := range []uint64{uint64(factor), scale} {
		top, low := bits.Mul64(hi, by)
		var carry uint64
		hi, lo = bits.Mul64(lo, by)
		hi, carry = bits.Add64(hi, low, 0)
		s.over = s.over || top != 0 || carry != 0
	}
	if per > 1 {
		high := hi % per
		hi /= per
		lo, _ = bits.Div64(high, lo, per)
	}
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, carry = bits.Add64(s.hi, hi, carry)
	s.over = s.over || carry != 0
}

// Round returns the bill in nano-dollars, rounded half up.
func (s *Sum) Round() Amount {
	const unit = 1_000_000_000_000
	lo, carry := bits.Add64(s.lo, unit/2, 0)
	hi, carry := bits.Add64(s.hi, 0, carry)
	if s.over || carry != 0 || hi >= unit {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, unit)
	return Amount(min(q, math.MaxInt64))
}

// Unbillable returns a bill above every possible hold.
func Unbillable() Sum { return Sum{over: true} }

// Charge returns the charge for the bill times a factor: the exact product, rounded once, half up.
// A factor of 0 means no factor.
func (s *Sum) Charge(factor Factor) Amount {
	if factor == 0 {
		return s.Round()
	}
	return s.product(factor, productUnit/2)
}

// Hold returns the amount to hold for the bill: with a factor, the exact product rounded up;
// without a factor, Round. The charge for a bill that is not larger never exceeds this amount.
func (s *Sum) Hold(factor Factor) Amount {
	if factor == 0 {
		return s.Round()
	}
	return s.product(factor, productUnit-1)
}

// productUnit is a nano-dollar in a sum times a factor.
const productUnit = 1_000_000_000_000_000_000

// product adds parts to the sum times a factor and returns the whole nano-dollars. One part is
// 1/productUnit of a nano-dollar.
func (s *Sum) product(factor Factor, parts uint64) Amount {
	if s.over || factor < 0 {
		return math.MaxInt64
	}
	top, middle := bits.Mul64(s.hi, uint64(factor))
	fromLow, low := bits.Mul64(s.lo, uint64(factor))
	middle, carry := bits.Add64(middle, fromLow, 0)
	top += carry
	low, carry = bits.Add64(low, parts, 0)
	middle, carry = bits.Add64(middle, 0, carry)
	top += carry
	if top != 0 || middle >= productUnit {
		return math.MaxInt64
	}
	q, _ := bits.Div64(middle, low, productUnit)
	return Amount(min(q, math.MaxInt64))
}
