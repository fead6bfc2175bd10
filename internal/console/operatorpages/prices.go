package operatorpages

import (
	"errors"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// savePrices changes the price factors of an account.
func (c *console) savePrices(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := pricesForm(a)
	return v.Submit(&form, func() (page.Responder, error) {
		patch, err := pricesOf(&form)
		if err != nil {
			return nil, err
		}
		return c.patchAccount(v, patch, "priced")
	}, func() (page.FullPage, error) { return c.accountWith(v, a, accountForms{prices: &form}) })
}

// factorOf reads the price factor of a form. An empty field means 1.
func factorOf(form *ui.PostForm) (money.Factor, error) {
	text := strings.TrimSpace(form.Field("price_factor").Value)
	if text == "" {
		return money.One, nil
	}
	factor, err := money.ParseFactor(text)
	if err != nil {
		return 0, fault.At(fault.InvalidRequest, "price_factor", "price_factor %s.", err)
	}
	return factor, nil
}

// pricesOf reads the form: a factor, with 1 as the default, and lines with a model and its factor.
func pricesOf(form *ui.PostForm) (p account.Patch, err error) {
	factor, factorErr := factorOf(form)
	models := map[string]money.Factor{}
	for line := range strings.Lines(form.Field("prices").Value) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		id, modelFactor := words[0], money.Factor(0)
		if len(words) == 2 {
			modelFactor, err = money.ParseFactor(words[1])
		}
		if _, twice := models[id]; twice || len(words) != 2 || err != nil {
			return p, errors.Join(factorErr, fault.At(fault.InvalidRequest, "prices",
				"Write one model and its factor on each line, and each model only once. This line is wrong: %q.", strings.TrimSpace(line)))
		}
		models[id] = modelFactor
	}
	return account.Patch{Factor: &factor, Prices: &models}, factorErr
}
