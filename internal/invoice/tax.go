package invoice

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// TaxRate is a tax in millionths of the net amount.
type TaxRate int64

// taxWhole is the TaxRate of 100 %.
const taxWhole = 1_000_000

var errTaxRate = errors.New("must be a percentage from 0 to 100 with at most 4 decimals, such as 19 or 8.1")

// ParseTaxRate reads a tax in percent.
func ParseTaxRate(text string) (TaxRate, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || len(whole) > 3 || len(fraction) > 4 || strings.HasSuffix(text, ".") ||
		strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, errTaxRate
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", 4-len(fraction)), 10, 64)
	if err != nil || n > taxWhole {
		return 0, errTaxRate
	}
	return TaxRate(n), nil
}

// String returns the tax in percent.
func (r TaxRate) String() string {
	text := strconv.FormatInt(int64(r)/10_000, 10)
	if fraction := int64(r) % 10_000; fraction != 0 {
		text += "." + strings.TrimRight(strconv.FormatInt(10_000+fraction, 10)[1:], "0")
	}
	return text + " %"
}

// taxIn returns the tax contained in a total, so that the net amount is rounded half up.
func taxIn(total int64, rate TaxRate) int64 {
	return total - part(total, taxWhole, taxWhole+int64(rate))
}

// part returns amount × numerator / denominator, rounded half up. All three are zero or more.
func part(amount, numerator, denominator int64) int64 {
	n := new(big.Int).Mul(big.NewInt(amount), big.NewInt(numerator))
	n.Lsh(n, 1).Add(n, big.NewInt(denominator))
	return n.Quo(n, new(big.Int).Lsh(big.NewInt(denominator), 1)).Int64()
}

// tax is the tax of an invoice.
type tax struct {
	minor int64
	// rate is the rate in the operator's settings. It is 0 for a tax added by the payment provider.
	rate TaxRate
	note string
}

// taxOf returns the tax of a payment. total is with tax, and net is the part that buys credit. A tax added
// by the payment provider is final. Otherwise the payment contains a tax at the terms' rate, except for a
// reverse charge.
func (t SellerTerms) taxOf(net, total int64, customer Party) tax {
	switch {
	case total > net:
		return tax{minor: total - net}
	case t.ReverseCharge != "" && customer.TaxID != "" && customer.Country != "" && customer.Country != t.Seller.Country:
		return tax{note: t.ReverseCharge}
	case t.TaxRate > 0:
		return tax{minor: taxIn(total, t.TaxRate), rate: t.TaxRate}
	}
	return tax{}
}
