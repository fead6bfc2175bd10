// Package money owns amounts, prices and their rounding.
//
// Invariants: an amount is a whole number of nano-dollars; prices are multiplied in 128 bits and rounded
// once, half up; nothing here uses floating point.
package money

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Amount is money in nano-dollars (1e-9 USD), positive or negative.
type Amount int64

// Units of an Amount. 1 USD is 200 credits (interface.md, Billing rules).
const (
	NanoUSD Amount = 1
	USD     Amount = 1_000_000_000
	Credit  Amount = USD / 200
)

// Max is the largest amount accepted from outside: a billion dollars. Nine times Max does not
// overflow.
const Max = 1_000_000_000 * USD

// ErrAmount reports a text that is not an amount of money.
var ErrAmount = errors.New("must be a decimal number of US dollars with at most 9 decimals, below 1000000000")

// Parse reads a decimal number of US dollars ("12.5", "-0.000000001"). More
// than nine decimals are an error, never rounded; an exponent is accepted when
// the value is exact.
func Parse(s string) (Amount, error) {
	n, err := parseScaled(s, 9)
	if err != nil || n > int64(Max) || n < -int64(Max) {
		return 0, ErrAmount
	}
	return Amount(n), nil
}

// ParseTyped is Parse for an amount typed by a person: an exponent is an error, since 1e3 for 13
// would be a thousand dollars.
func ParseTyped(s string) (Amount, error) {
	if strings.ContainsAny(s, "eE") {
		return 0, ErrAmount
	}
	return Parse(s)
}

// ErrCredits reports a text that is not a number of credits.
var ErrCredits = errors.New("must be a decimal number of credits with at most 7 decimals, at most 200000000000")

// ParseCredits parses a decimal number of credits ("12.5"), as Parse does for US dollars. One
// nano-dollar is 0.0000002 credits. If the number is not a whole number of nano-dollars,
// ParseCredits returns an error; it never rounds.
func ParseCredits(s string) (Amount, error) {
	n, err := parseScaled(s, 7)
	if err != nil || n%2 != 0 || n/2 > int64(Max) || n/2 < -int64(Max) {
		return 0, ErrCredits
	}
	return Amount(n / 2), nil
}

// parseScaled reads a decimal text as an integer of 10^-decimals.
func parseScaled(s string, decimals int) (int64, error) {
	if len(s) == 0 || len(s) > 64 || strings.ContainsAny(s, "_/xXpPiInN") {
		return 0, ErrAmount
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 { // bound the exponent before big.Rat expands it
		exp, err := strconv.Atoi(s[i+1:])
		if err != nil || exp > 30 || exp < -30 {
			return 0, ErrAmount
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, ErrAmount
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	r.Mul(r, new(big.Rat).SetInt(scale))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, ErrAmount
	}
	return r.Num().Int64(), nil
}

// formatScaled writes n x 10^-decimals as an exact decimal without exponent.
func formatScaled(n int64, decimals int) string {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -uint64(n)
	}
	digits := strconv.FormatUint(u, 10)
	if len(digits) <= decimals {
		digits = strings.Repeat("0", decimals-len(digits)+1) + digits
	}
	whole, part := digits[:len(digits)-decimals], strings.TrimRight(digits[len(digits)-decimals:], "0")
	if part == "" {
		return sign + whole
	}
	return sign + whole + "." + part
}

// String returns the amount in US dollars, exact and without an exponent.
func (a Amount) String() string { return formatScaled(int64(a), 9) }

// Round rounds the amount to a multiple of unit, half away from zero. Near the largest amounts it rounds towards zero.
func (a Amount) Round(unit Amount) Amount {
	remainder := a % unit
	switch a -= remainder; {
	case remainder >= unit-remainder && a <= math.MaxInt64-unit:
		a += unit
	case -remainder >= unit+remainder && a >= math.MinInt64+unit:
		a -= unit
	}
	return a
}

// MarshalJSON writes the amount as a JSON number of US dollars, exact.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads a JSON number or string of US dollars. The text is read
// as it stands, so 0.1 is exactly 0.1.
func (a *Amount) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if bytes.HasPrefix(raw, []byte(`"`)) {
		if err := json.Unmarshal(raw, &text); err != nil {
			return ErrAmount
		}
	}
	v, err := Parse(text)
	if err != nil {
		return err
	}
	*a = v
	return nil
}

// Credits returns the amount as a JSON number of credits, exact.
func (a Amount) Credits() json.Number {
	// A dollar is 200 credits, so a nano-dollar is exactly 2 x 10^-7 credits. The limit prevents an overflow of
	// 2a; no account can have more than Max.
	const limit = math.MaxInt64 / 2
	return json.Number(formatScaled(2*max(-limit, min(int64(a), limit)), 7))
}

// Add returns a + b, or an error when the sum leaves the range of an amount.
func Add(a, b Amount) (Amount, error) {
	if (b > 0 && a > math.MaxInt64-b) || (b < 0 && a < math.MinInt64-b) {
		return 0, fmt.Errorf("amount out of range: %s + %s", a, b)
	}
	return a + b, nil
}

// Plus returns a + b, limited to the range -Max to Max. It also adds counts.
func Plus[T ~int64](a, b T) T {
	within := func(n T) T { return max(T(-Max), min(n, T(Max))) }
	return within(within(a) + within(b))
}

// PlusKnown returns sum + more, at most Max. Nil is an unknown amount; the result is nil if both are
// unknown.
func PlusKnown(sum, more *Amount) *Amount {
	if more == nil {
		return sum
	}
	total := *more
	if sum != nil {
		total = min(*sum, Max) + min(*more, Max)
	}
	total = min(total, Max)
	return &total
}
