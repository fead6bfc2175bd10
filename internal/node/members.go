package node

import (
	"fmt"
	"slices"

	"tollgate/internal/store"
)

// Members are the nodes that the table knows, as of the transaction that asked:
// whatever a room holds by epochs, this tells whose it still is. By epoch: whether
// it lives. Those that are dead stay known for a day.
type Members map[string]bool

// MembersTx returns the nodes that are known.
func MembersTx(tx *store.Tx) (Members, error) {
	rows, err := listTx(tx)
	if err != nil {
		return nil, err
	}
	members := make(Members, len(rows))
	for _, row := range rows {
		members[row.Epoch] = !row.Dead
	}
	return members, nil
}

// Lives tells whether an epoch is that of a living node.
func (m Members) Lives(epoch string) bool { return m[epoch] }

// Knows tells whether an epoch is one of a node that lives or died lately.
func (m Members) Knows(epoch string) bool {
	_, known := m[epoch]
	return known
}

// Living returns the epochs of those that live, in their order.
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

// HostsTx returns the names of the machines that the nodes run on, or ran on, by
// epoch, of those whose name is known.
func HostsTx(tx *store.Tx) (map[string]string, error) {
	rows, err := tx.Query(`SELECT epoch, host FROM node WHERE host <> ''`)
	if err != nil {
		return nil, fmt.Errorf("read the machines of nodes: %w", err)
	}
	defer rows.Close()
	hosts := map[string]string{}
	for rows.Next() {
		var epoch, host string
		if err := rows.Scan(&epoch, &host); err != nil {
			return nil, fmt.Errorf("read the machines of nodes: %w", err)
		}
		hosts[epoch] = host
	}
	return hosts, rows.Err()
}
