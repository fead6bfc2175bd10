package topup

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/money"
)

// Currency is a currency of payments.
type Currency struct {
	Code     string // ISO 4217, lower case
	Decimals int    // digits after the decimal point
}

// twoDecimals and noDecimals list the currencies of payments by their number of decimals.
const (
	twoDecimals = "usd eur gbp cny aed aud brl cad chf czk dkk hkd ils inr mxn myr nok nzd php pln ron sar sek sgd thb try twd zar"
	noDecimals  = "clp jpy krw vnd"
)

// CurrencyOf returns a currency by its ISO 4217 code in lower case. The error lists the valid codes.
func CurrencyOf(code string) (Currency, error) {
	switch {
	case slices.Contains(strings.Fields(twoDecimals), code):
		return Currency{code, 2}, nil
	case slices.Contains(strings.Fields(noDecimals), code):
		return Currency{code, 0}, nil
	}
	return Currency{}, fmt.Errorf("must be one of %s %s", twoDecimals, noDecimals)
}

// Decimal returns an amount in the smallest unit as a decimal number.
func (c Currency) Decimal(minor int64) string {
	sign := ""
	if minor < 0 {
		sign, minor = "-", -minor
	}
	text := strconv.FormatInt(minor, 10)
	if c.Decimals == 0 {
		return sign + text
	}
	text = strings.Repeat("0", max(0, c.Decimals+1-len(text))) + text
	return sign + text[:len(text)-c.Decimals] + "." + text[len(text)-c.Decimals:]
}

// Text returns an amount with its currency for people, such as `20.00 USD`.
func (c Currency) Text(minor int64) string { return c.Decimal(minor) + " " + strings.ToUpper(c.Code) }

// Parse reads a decimal number as an amount in the smallest unit, exactly.
func (c Currency) Parse(text string) (int64, error) {
	n, err := parseDecimal(text, c.Decimals)
	if err != nil {
		return 0, fmt.Errorf("must be an amount in %s with at most %d decimals", strings.ToUpper(c.Code), c.Decimals)
	}
	return n, nil
}

// maxDigits bounds the digits of a decimal number.
const maxDigits = 18

var errDecimal = errors.New("must be a decimal number")

// parseDecimal reads a decimal number of zero or more as a whole number of units of 10^-decimals,
// without rounding.
func parseDecimal(text string, decimals int) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > decimals || len(whole)+decimals > maxDigits {
		return 0, errDecimal
	}
	digits := whole + fraction + strings.Repeat("0", decimals-len(fraction))
	if whole == "" || strings.HasSuffix(text, ".") || strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, errDecimal
	}
	return strconv.ParseInt(digits, 10, 64)
}

// rateDecimals and bonusDecimals are the decimals of a rate in US dollars and of a bonus in percent.
const (
	rateDecimals  = 9
	bonusDecimals = 4
)

// Rate is the price of a currency's unit in nano-dollars.
type Rate int64

// ParseRate reads the value of a unit of a currency in US dollars.
func ParseRate(text string) (Rate, error) {
	n, err := parseDecimal(text, rateDecimals)
	if err != nil || n == 0 {
		return 0, errors.New("must be the US dollars of one unit of the currency, with at most 9 decimals, such as 0.138")
	}
	return Rate(n), nil
}

// String returns the rate in US dollars.
func (r Rate) String() string { return money.Amount(r).String() }

// Bonus is additional credit, in millionths of a payment's credit.
type Bonus int64

// String returns the bonus in percent.
func (b Bonus) String() string {
	text := fmt.Sprintf("%d.%04d", b/10_000, b%10_000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " %"
}

// BonusTier is the bonus for payments of at least From.
type BonusTier struct {
	From  int64 // smallest unit
	Bonus Bonus
}

// Terms are the operator's offer: amounts, their currency, its rate, bonuses, and automatic top-ups.
type Terms struct {
	Currency         Currency
	Rate             Rate
	Amounts          []int64 // the choices, ascending
	Minimum, Maximum int64
	Tiers            []BonusTier // ascending
	// Automatic is the largest monthly maximum of automatic top-ups. Zero means that there are none.
	Automatic int64
}

// TermsError is an invalid field of terms.
type TermsError struct {
	Field string // currency, rate, amounts, minimum, maximum, bonus or automatic_maximum
	Err   error
}

// Error implements error.
func (e *TermsError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TermsError) Unwrap() error { return e.Err }

// TermsTexts are the texts of terms, as an operator writes them.
type TermsTexts struct {
	Currency         string
	Rate             string   // empty means 1 for US dollars
	Amounts          []string // in units of the currency
	Minimum, Maximum string
	Tiers            []string // FROM=PERCENT
	Automatic        string   // empty means none
}

// NewTerms reads terms. The error is a *TermsError.
func NewTerms(o TermsTexts) (p Terms, err error) {
	var field string
	defer func() {
		if err != nil {
			err = &TermsError{field, err}
		}
	}()
	field = "currency"
	if p.Currency, err = CurrencyOf(o.Currency); err != nil {
		return p, err
	}
	field = "rate"
	if o.Rate == "" && o.Currency == "usd" {
		o.Rate = "1"
	}
	if o.Rate == "" {
		return p, fmt.Errorf("must be set, because payments are in %s and credit is in USD", strings.ToUpper(o.Currency))
	}
	if p.Rate, err = ParseRate(o.Rate); err != nil {
		return p, err
	}
	field = "minimum"
	if p.Minimum, err = p.Currency.Parse(o.Minimum); err == nil && p.Minimum == 0 {
		err = errors.New("must be above 0")
	}
	if err != nil {
		return p, err
	}
	field = "maximum"
	if p.Maximum, err = p.Currency.Parse(o.Maximum); err == nil && p.Maximum < p.Minimum {
		err = errors.New("must not be below the minimum")
	}
	if err != nil {
		return p, err
	}
	field = "bonus"
	if p.Tiers, err = p.readTiers(o.Tiers); err != nil {
		return p, err
	}
	field = "maximum"
	if _, err = p.Quote(p.Maximum); err != nil {
		return p, err
	}
	field = "automatic_maximum"
	if o.Automatic != "" {
		if p.Automatic, err = p.Currency.Parse(o.Automatic); err == nil && p.Automatic < p.Minimum {
			err = errors.New("must not be below the minimum of a payment")
		}
		if err != nil {
			return p, err
		}
	}
	field = "amounts"
	p.Amounts, err = p.readAmounts(o.Amounts)
	return p, err
}

// maxChoices bounds the amounts and the tiers of terms.
const maxChoices = 20

func (p Terms) readAmounts(texts []string) (amounts []int64, err error) {
	if len(texts) > maxChoices {
		return nil, fmt.Errorf("must have at most %d entries", maxChoices)
	}
	for _, text := range texts {
		minor, err := p.Currency.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if minor < p.Minimum || minor > p.Maximum {
			return nil, fmt.Errorf("%q: must be from %s to %s", text, p.Currency.Decimal(p.Minimum), p.Currency.Text(p.Maximum))
		}
		amounts = append(amounts, minor)
	}
	slices.Sort(amounts)
	return slices.Compact(amounts), nil
}

func (p Terms) readTiers(texts []string) (tiers []BonusTier, err error) {
	if len(texts) > maxChoices {
		return nil, fmt.Errorf("must have at most %d entries", maxChoices)
	}
	for _, text := range texts {
		from, percent, _ := strings.Cut(text, "=")
		minor, err := p.Currency.Parse(strings.TrimSpace(from))
		if err != nil {
			return nil, fmt.Errorf("%q: must be FROM=PERCENT, such as 50=5; FROM %w", text, err)
		}
		millionths, err := parseDecimal(strings.TrimSpace(percent), bonusDecimals)
		if err != nil || millionths == 0 || millionths > 1_000_000 {
			return nil, fmt.Errorf("%q: must be FROM=PERCENT, such as 50=5, with a percentage above 0 and up to 100", text)
		}
		tiers = append(tiers, BonusTier{minor, Bonus(millionths)})
	}
	slices.SortFunc(tiers, func(a, b BonusTier) int { return int(max(-1, min(1, a.From-b.From))) })
	for i := 1; i < len(tiers); i++ {
		if tiers[i].From == tiers[i-1].From {
			return nil, fmt.Errorf("has two entries from %s on", p.Currency.Text(tiers[i].From))
		}
	}
	return tiers, nil
}

// Quote is the credit for a payment.
type Quote struct {
	Minor  int64 // to pay, in the currency's smallest unit
	Bonus  Bonus
	Credit money.Amount // with the bonus
}

// Quote returns the credit for a payment: its amount times the rate, plus the bonus of the highest tier that
// it reaches, rounded once to whole nano-dollars, half up (money.md, Top-ups).
func (p Terms) Quote(minor int64) (Quote, error) {
	q := Quote{Minor: minor}
	for _, tier := range p.Tiers {
		if minor >= tier.From {
			q.Bonus = tier.Bonus
		}
	}
	credit, err := creditOf(minor, p.Rate, q.Bonus, p.Currency.Decimals)
	q.Credit = credit
	return q, err
}

// creditOf returns the credit of a payment.
func creditOf(minor int64, rate Rate, bonus Bonus, decimals int) (money.Amount, error) {
	const whole = 1_000_000 // millionths
	product := new(big.Int).Mul(big.NewInt(minor), big.NewInt(int64(rate)))
	product.Mul(product, big.NewInt(whole+int64(bonus)))
	divisor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	divisor.Mul(divisor, big.NewInt(whole))
	credit := roundHalfUp(product, divisor)
	if !credit.IsInt64() || credit.Int64() > int64(money.Max) {
		return 0, fmt.Errorf("must be worth at most %s USD", money.Max)
	}
	return money.Amount(credit.Int64()), nil
}

// roundHalfUp returns the quotient of two non-negative numbers, rounded half up.
func roundHalfUp(numerator, denominator *big.Int) *big.Int {
	twice := new(big.Int).Lsh(numerator, 1)
	twice.Add(twice, denominator)
	return twice.Quo(twice, new(big.Int).Lsh(denominator, 1))
}
