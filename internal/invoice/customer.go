package invoice

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// CustomerTx returns an account's details for documents. Without saved details, the name is that of the
// account.
func CustomerTx(tx *store.Tx, accountID string) (Party, error) {
	var p Party
	var address string
	err := tx.QueryRow(`SELECT name, address, country, tax_id FROM invoice_customer WHERE account = $1`, accountID).
		Scan(&p.Name, &address, &p.Country, &p.TaxID)
	if errors.Is(err, sql.ErrNoRows) {
		owner, err := account.GetTx(tx, accountID)
		return Party{Name: owner.Name}, err
	}
	if err != nil {
		return p, fmt.Errorf("read the details of a customer: %w", err)
	}
	if address != "" {
		p.Address = strings.Split(address, "\n")
	}
	return p, nil
}

// SetCustomerTx saves an account's details for later documents. Errors that the customer can correct are
// *fault.Errors at the field.
func SetCustomerTx(tx *store.Tx, accountID string, p Party) error {
	p, err := p.Check()
	if e, ok := errors.AsType[*PartyError](err); ok {
		return fault.At(fault.InvalidRequest, e.Field, "The %s %s.", strings.ReplaceAll(e.Field, "_", " "), e.Err)
	}
	if p.Name == "" {
		return fault.At(fault.InvalidRequest, "name", "Enter the name for your invoices.")
	}
	_, err = tx.Exec(`INSERT INTO invoice_customer (account, name, address, country, tax_id) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (account) DO UPDATE SET name = excluded.name, address = excluded.address, country = excluded.country,
		tax_id = excluded.tax_id`, accountID, p.Name, strings.Join(p.Address, "\n"), p.Country, p.TaxID)
	if err != nil {
		return fmt.Errorf("save the details of a customer: %w", err)
	}
	return nil
}
