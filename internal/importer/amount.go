package importer

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"tollgate/internal/money"
)

// number reads a decimal number exactly. It returns nil for anything else, and for numbers outside
// of the range of prices, shares and amounts.
func number(text string) *big.Rat {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 64 || strings.ContainsAny(text, "/xXpPoObB_") {
		return nil
	}
	f, _, err := big.ParseFloat(text, 10, 64, big.ToNearestEven) // bounds the exponent before it is computed
	if err != nil || f.IsInf() || f.MantExp(nil) > 256 || f.MantExp(nil) < -256 {
		return nil
	}
	r, _ := new(big.Rat).SetString(text) // nil for anything else
	return r
}

// whole reads a whole number. An empty column is 0. If the column holds anything else, whole remarks on
// the value and writes substitute into the row, so that each value has one remark. name describes the
// substitute in the remark.
func (n *notes) whole(e entry, r record, column string, substitute int64, name string) int64 {
	text := strings.TrimSpace(r[column])
	value, ok := wholeOf(text)
	if text != "" && !ok {
		n.unreadable(e, column, text, name)
		r[column] = strconv.FormatInt(substitute, 10)
		return substitute
	}
	return value
}

// decimal reads a decimal number. It returns nil if the column is empty. If the column holds anything
// else, decimal remarks on the value and returns 0 and false.
func (n *notes) decimal(e entry, r record, column string) (*big.Rat, bool) {
	text := strings.TrimSpace(r[column])
	if text == "" {
		return nil, true
	}
	if value := number(text); value != nil {
		return value, true
	}
	n.unreadable(e, column, text, "0")
	return new(big.Rat), false
}

// unreadable remarks that a value is not a number, and names its substitute.
func (n *notes) unreadable(e entry, column, text, as string) {
	n.remark(e, fmt.Sprintf("its %s is not a number and counts as %s: %s", column, as, strconv.Quote(excerpt(text))),
		"correct it in the source before the import, or set it here by hand")
}

// wholeOf reads a whole number such as 60 or 60.0.
func wholeOf(text string) (int64, bool) {
	value := number(text)
	if value == nil || !value.IsInt() || !value.Num().IsInt64() {
		return 0, false
	}
	return value.Num().Int64(), true
}

// whole returns a whole number as a fraction.
func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// product returns the product of the factors.
func product(a *big.Rat, others ...*big.Rat) *big.Rat {
	out := new(big.Rat).Set(a)
	for _, b := range others {
		out.Mul(out, b)
	}
	return out
}

// scaled returns r × 10^decimals as a whole number, rounded up or down. It returns false if the absolute
// value is above limit.
func scaled(r *big.Rat, decimals int64, up bool, limit int64) (int64, bool) {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(decimals), nil)
	n := new(big.Int).Mul(r.Num(), power)
	quotient, rest := new(big.Int).DivMod(n, r.Denom(), new(big.Int)) // Euclid's: the rest is not negative
	if up && rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if !quotient.IsInt64() || quotient.Int64() > limit || quotient.Int64() < -limit {
		return 0, false
	}
	return quotient.Int64(), true
}

// amountOf returns US dollars as an amount, rounded up in the account's favour.
func amountOf(usd *big.Rat) (money.Amount, bool) {
	n, ok := scaled(usd, 9, true, int64(money.Max))
	return money.Amount(n), ok
}

// priceOf returns US dollars as a price, rounded down.
func priceOf(usd *big.Rat) (money.Price, bool) {
	n, ok := scaled(usd, 9, false, int64(money.MaxPrice))
	return money.Price(n), ok && n >= 0
}

// factorOf returns a price factor, rounded down. If share is out of range, it returns 1 and false. If the
// factor had to be raised to the smallest one, it also returns false.
func factorOf(share *big.Rat) (money.Factor, bool) {
	n, ok := scaled(share, 6, false, int64(money.MaxFactor))
	if !ok {
		return money.One, false
	}
	if n < 1 {
		return 1, false
	}
	return money.Factor(n), true
}
