package operator_test

import (
	"slices"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/mail"
)

// TestUnitsOfPrices checks that mails about prices have a text for the unit of each kind of models.
func TestUnitsOfPrices(t *testing.T) {
	t.Parallel()
	for _, kind := range catalog.Kinds() {
		d := kind.Definition()
		if d == nil {
			continue
		}
		for i := range d.Measures {
			if name := d.Measures[i].Name; !slices.Contains(mail.PriceUnits(), name) {
				t.Errorf("the unit %s of %s has no text", name, kind)
			}
		}
	}
}
