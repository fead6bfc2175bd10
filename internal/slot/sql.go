package slot

import (
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// lineRows summarizes the rows of a line.
type lineRows struct {
	own    grant
	alive  int      // other living nodes
	nodes  int      // other living nodes with a row
	others int      // slots granted to other living nodes
	wants  int      // slots wanted by other living nodes
	dead   []string // epochs of dead nodes with a row
	jobs   int      // slots of jobs
}

// readTx reads the rows of a line for an epoch. If epoch is empty, all rows belong to other nodes.
// readTx returns node.ErrFenced if the epoch is dead.
func readTx(tx *store.Tx, line, epoch string) (lineRows, error) {
	nodes, err := node.MembersTx(tx)
	if err != nil {
		return lineRows{}, err
	}
	var r lineRows
	if err := tx.QueryRow(`SELECT COUNT(*) FROM line_job WHERE line = $1`, line).Scan(&r.jobs); err != nil {
		return lineRows{}, err
	}
	r.alive = len(nodes.Living())
	if nodes.Lives(epoch) {
		r.alive--
	} else if epoch != "" {
		return lineRows{}, node.ErrFenced
	}
	err = tx.Each(func(row store.Row) error {
		var owner string
		var g grant
		if err := row.Scan(&owner, &g.granted, &g.wanted); err != nil {
			return err
		}
		switch {
		case owner == epoch:
			r.own = g
		case nodes.Lives(owner):
			r.nodes++
			r.others += g.granted
			r.wants += g.wanted
		default:
			r.dead = append(r.dead, owner)
		}
		return nil
	}, `SELECT epoch, granted, wanted FROM line_slot WHERE line = $1`, line)
	return r, err
}

// writeTx writes the next grant to the row of an epoch.
func (r lineRows) writeTx(tx *store.Tx, line, epoch string, next grant) error {
	if len(r.dead) > 0 {
		if _, err := tx.Exec(`DELETE FROM line_slot WHERE line = $1 AND `+tx.In("epoch", 2), line, store.List(r.dead)); err != nil {
			return err
		}
	}
	var err error
	switch next {
	case r.own:
	case grant{}:
		_, err = tx.Exec(`DELETE FROM line_slot WHERE line = $1 AND epoch = $2`, line, epoch)
	default:
		_, err = tx.Exec(`INSERT INTO line_slot (line, epoch, granted, wanted) VALUES ($1, $2, $3, $4)
			ON CONFLICT (line, epoch) DO UPDATE SET granted = excluded.granted, wanted = excluded.wanted`,
			line, epoch, next.granted, next.wanted)
	}
	return err
}
