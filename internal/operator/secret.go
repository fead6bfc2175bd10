package operator

import (
	"errors"
	"slices"
	"strings"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/vault"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// LineSecret is a stored secret with the lines of the current catalog that refer to it.
type LineSecret struct {
	vault.StoredSecret

	Lines []string // IDs; never nil

	// Scheduled is the ID of the first pending change with a line for an unused secret, or empty.
	Scheduled string
}

// SecretsTx returns the stored secrets by name.
func SecretsTx(tx *store.Tx, keys vault.KeyRing) ([]LineSecret, error) {
	all, err := keys.ListTx(tx)
	if err != nil {
		return nil, err
	}
	doc, _, err := catalog.CurrentTx(tx)
	if errors.Is(err, catalog.ErrNoRevision) {
		doc, err = &catalog.Document{}, nil
	}
	if err != nil {
		return nil, err
	}
	pending, err := pendingDocumentsTx(tx)
	if err != nil {
		return nil, err
	}
	list := make([]LineSecret, 0, len(all))
	for _, s := range all {
		secret := LineSecret{StoredSecret: s, Lines: doc.LinesWithSecret(s.Name)}
		if len(secret.Lines) == 0 {
			change, _ := scheduledUse(pending, s.Name)
			secret.Scheduled = change.ID
		}
		list = append(list, secret)
	}
	return list, nil
}

// StoreSecretTx stores a secret for lines; see vault.KeyRing.StoreTx.
func StoreSecretTx(tx *store.Tx, by Actor, keys vault.KeyRing, name, value string) error {
	if err := keys.StoreTx(tx, name, value); err != nil {
		return err
	}
	return writeLogTx(tx, by, LogRow{Act: SecretStore, Object: name})
}

// DeleteSecretTx deletes a secret. It returns a *fault.Error if a line refers to the secret: in the
// current catalog, or in a pending change.
func DeleteSecretTx(tx *store.Tx, by Actor, name string) error {
	if err := vault.LockTx(tx); err != nil {
		return err
	}
	doc, _, err := catalog.CurrentTx(tx)
	if err != nil && !errors.Is(err, catalog.ErrNoRevision) {
		return err
	}
	if err == nil {
		if lines := doc.LinesWithSecret(name); len(lines) > 0 {
			return fault.New(fault.InvalidRequest, "The lines of the catalog use this secret: %s. Remove them or change their keys first.",
				strings.Join(lines, ", "))
		}
	}
	if err := checkUnscheduledTx(tx, name); err != nil {
		return err
	}
	if err := vault.DeleteTx(tx, name); err != nil {
		return err
	}
	return writeLogTx(tx, by, LogRow{Act: SecretDelete, Object: name})
}

// checkUnscheduledTx returns a *fault.Error if a pending change of the catalog adds a line with the secret.
func checkUnscheduledTx(tx *store.Tx, name string) error {
	pending, err := pendingDocumentsTx(tx)
	if err != nil {
		return err
	}
	c, line := scheduledUse(pending, name)
	if line == "" {
		return nil
	}
	return fault.New(fault.InvalidRequest, "The change %s, scheduled for %s, uses this secret in line %s. "+
		"Cancel the change first.", c.ID, time.UnixMilli(c.AtMS).UTC().Format(time.RFC3339), line)
}

// pendingDocuments is a pending change of the catalog with its documents.
type pendingDocuments struct {
	change     catalog.ScheduledChange
	base, next *catalog.Document
}

// pendingDocumentsTx reads the pending changes of the catalog.
func pendingDocumentsTx(tx *store.Tx) (list []pendingDocuments, err error) {
	pending, err := catalog.PendingChangesTx(tx)
	if err != nil {
		return nil, err
	}
	for _, c := range pending {
		base, next, err := c.DocumentsTx(tx)
		if err != nil {
			return nil, err
		}
		list = append(list, pendingDocuments{c, base, next})
	}
	return list, nil
}

// scheduledUse returns the first pending change of the catalog with a new line for a secret, and the line.
// Without such a change, the line is empty.
func scheduledUse(pending []pendingDocuments, name string) (change catalog.ScheduledChange, line string) {
	for _, p := range pending {
		before := p.base.LinesWithSecret(name)
		for _, line := range p.next.LinesWithSecret(name) {
			if !slices.Contains(before, line) {
				return p.change, line
			}
		}
	}
	return catalog.ScheduledChange{}, ""
}

// RotateSecretsTx encrypts all secrets again with the first key of the installation; see
// vault.KeyRing.RotateTx.
func RotateSecretsTx(tx *store.Tx, by Actor, keys vault.KeyRing) ([]string, error) {
	names, err := keys.RotateTx(tx)
	if err != nil {
		return nil, err
	}
	return names, writeLogTx(tx, by, LogRow{Act: SecretRotate, Object: "all", After: Details{"secrets": names}})
}
