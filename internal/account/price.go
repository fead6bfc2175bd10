package account

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// maxPrices is the maximum number of models with their own factor in an account.
const maxPrices = 100

// Prices are the factors by which an account's prices differ from the catalog's prices.
type Prices struct {
	// Factor applies to all models that are not in Models. It is zero only in the zero value, which
	// means the catalog's prices.
	Factor money.Factor
	// Models has the factors of single models, by public id. They replace Factor. An id that is not
	// in the catalog has no effect. Do not change the map, because the key cache shares it.
	Models map[string]money.Factor
	// Unreadable describes the error in the stored prices, or is empty. Unreadable prices cannot
	// bill a request.
	Unreadable string
}

// errUnreadable returns an error if the prices are unreadable.
func (p Prices) errUnreadable() error {
	if p.Unreadable == "" {
		return nil
	}
	f := fault.New(fault.ServiceUnavailable, "The prices of this account cannot be read (%s), so nothing runs that has to be billed. "+
		"You were not charged. The operator has to set the account's price_factor and prices.", p.Unreadable)
	f.NoRetry = true
	return f
}

// FactorOf returns the factor of a model's prices, or zero for the catalog's prices.
func (p Prices) FactorOf(model string) money.Factor {
	factor := p.Factor
	if len(p.Models) > 0 {
		if override, ok := p.Models[model]; ok {
			factor = override
		}
	}
	if factor == money.One {
		return 0
	}
	return factor
}

// PricesTx returns the prices of an account.
func PricesTx(tx *store.Tx, account string) (Prices, error) {
	var factor any
	var models string
	err := tx.QueryRow(`SELECT price_factor, prices FROM account WHERE id = $1`, account).Scan(&factor, &models)
	if errors.Is(err, sql.ErrNoRows) {
		return Prices{}, notFound("account", account)
	}
	if err != nil {
		return Prices{}, fmt.Errorf("read the account's prices: %w", err)
	}
	p := loadPrices(factor, models)
	return p, p.errUnreadable()
}

// isValidFactor reports whether a factor is valid. Zero is invalid, because no factor may make a
// model free.
func isValidFactor(factor money.Factor) bool { return factor > 0 && factor <= money.MaxFactor }

// checkFactor returns an error unless factor is valid as the price_factor of an account.
func checkFactor(factor money.Factor) error {
	if isValidFactor(factor) {
		return nil
	}
	return fault.At(fault.InvalidRequest, "price_factor",
		"price_factor is what the account pays times the catalog's prices: it must be above 0 and at most %s, with at most 6 decimals, "+
			"for example 0.9.", money.MaxFactor)
}

// checkPrices returns an error for invalid factors of single models.
func checkPrices(models map[string]money.Factor) error {
	const param = "prices"
	if len(models) > maxPrices {
		return fault.At(fault.InvalidRequest, param, "{param} must have at most %d models.", maxPrices)
	}
	for _, id := range slices.Sorted(maps.Keys(models)) {
		if !isModelID(id) {
			return fault.At(fault.InvalidRequest, param, "{param} must hold factors by model id, as GET /v1/models lists them.")
		}
		if !isValidFactor(models[id]) {
			return fault.At(fault.InvalidRequest, param,
				"{param}: the factor of %s must be above 0 and at most %s, with at most 6 decimals, for example 0.9.", id, money.MaxFactor)
		}
	}
	return nil
}

// pricesText returns the stored form of the factors of single models: a JSON object, or an empty
// string.
func pricesText(models map[string]money.Factor) string {
	if len(models) == 0 {
		return ""
	}
	raw, err := json.Marshal(models)
	if err != nil {
		panic(fmt.Sprintf("account: encode factors: %v", err)) // strings and numbers cannot fail
	}
	return string(raw)
}

// loadPrices decodes the stored prices of an account. It never fails, because one account with
// unreadable prices must not break the list of accounts; see Prices.Unreadable.
func loadPrices(storedFactor any, models string) Prices {
	factor, ok := storedFactor.(int64)
	p := Prices{Factor: money.Factor(factor)}
	if !ok || !isValidFactor(p.Factor) {
		p.Unreadable = fmt.Sprintf("price_factor is stored as %s", clip(fmt.Sprint(storedFactor)))
		return p
	}
	if models == "" {
		return p
	}
	if err := json.Unmarshal([]byte(models), &p.Models); err != nil {
		p.Models, p.Unreadable = nil, "prices are stored as "+clip(models)
		return p
	}
	for _, id := range slices.Sorted(maps.Keys(p.Models)) {
		if !isValidFactor(p.Models[id]) {
			p.Unreadable = fmt.Sprintf("the factor of %s is stored as %s", clip(id), p.Models[id])
			return p
		}
	}
	return p
}
