package node

import (
	"fmt"
	"slices"

	"tollgate/internal/store"
)

// Members has the epochs in the table as of a transaction, with true for living ones. Other packages
// use Members to find work of dead epochs. Dead epochs stay in the table for a day.
type Members map[string]bool

// MembersTx returns the nodes in the table.
func MembersTx(tx *store.Tx) (Members, error) {
	rows, err := listTx(tx)
	if err != nil {
		return nil, err
	}
	return membersOf(rows), nil
}

func membersOf(rows []Record) Members {
	members := make(Members, len(rows))
	for _, row := range rows {
		members[row.Epoch] = !row.Dead
	}
	return members
}

// Lives reports whether an epoch is alive.
func (m Members) Lives(epoch string) bool { return m[epoch] }

// Knows reports whether an epoch is alive or died within a day.
func (m Members) Knows(epoch string) bool {
	_, known := m[epoch]
	return known
}

// Living returns the living epochs in order.
func (m Members) Living() []string {
	var living []string
	for epoch, lives := range m {
		if lives {
			living = append(living, epoch)
		}
	}
	slices.Sort(living)
	return living
}

// HostsTx returns the known host names of nodes by epoch.
func HostsTx(tx *store.Tx) (map[string]string, error) {
	hosts := map[string]string{}
	err := tx.Each(func(row store.Row) error {
		var epoch, host string
		err := row.Scan(&epoch, &host)
		hosts[epoch] = host
		return err
	}, `SELECT epoch, host FROM node WHERE host <> ''`)
	if err != nil {
		return nil, fmt.Errorf("read the hosts of nodes: %w", err)
	}
	return hosts, nil
}
