package response

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/store"
)

const (
	findTurn = `SELECT chain, previous, created_ms, deleted, context FROM response WHERE id = $1 AND account = $2`

	// readItems reads the turns of a response, each found by its id, the newest first. A sort by age
	// would take most of the time of a long conversation, so readTurns checks the order instead.
	readItems = `WITH RECURSIVE turn (id, previous, input, output) AS (
			SELECT id, previous, input, output FROM response WHERE id = $1
			UNION ALL
			SELECT r.id, r.previous, r.input, r.output FROM turn t JOIN response r ON r.id = t.previous WHERE t.previous <> '')
		SELECT id, previous, input, output FROM turn`

	readAnswer = `SELECT output, object FROM response WHERE id = $1`
)

// Context identifies a stored response with all turns before it.
type Context struct {
	ID string
	// Size is the size of all items in bytes.
	Size int64

	chain, previous string
}

// Find returns a response of an account. It returns ErrNotFound if it is not visible.
func (r *Responses) Find(ctx context.Context, account, id string) (*Context, error) {
	return store.Read(ctx, r.opts.DB, func(tx *store.Tx) (*Context, error) { return r.findTx(tx, account, id) })
}

func (r *Responses) findTx(tx *store.Tx, account, id string) (*Context, error) {
	c := &Context{ID: id}
	var created, deleted int64
	err := tx.QueryRow(findTurn, id, account).Scan(&c.chain, &c.previous, &created, &deleted, &c.Size)
	if errors.Is(err, sql.ErrNoRows) || err == nil && deleted != 0 {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	now, err := tx.ExpiryMS()
	if err != nil {
		return nil, err
	}
	if created+r.opts.Retention.Milliseconds() <= now {
		return nil, ErrNotFound
	}
	return c, nil
}

// StoredTurn has the items of one turn, in JSON without brackets.
type StoredTurn struct {
	ID            string
	Input, Output []byte
}

// Turns returns the turns of a response, the oldest first. Their items have c.Size bytes. It returns
// ErrIncomplete if a turn is no longer stored.
func (r *Responses) Turns(ctx context.Context, c *Context) ([]StoredTurn, error) {
	return store.Read(ctx, r.opts.DB, func(tx *store.Tx) ([]StoredTurn, error) {
		if err := tx.ByIndex(); err != nil {
			return nil, err
		}
		return readTurns(tx, c.ID)
	})
}

func readTurns(tx *store.Tx, id string) (turns []StoredTurn, err error) {
	rows, err := tx.Query(readItems, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t StoredTurn
		previous := id
		if err := rows.Scan(&t.ID, &id, &t.Input, &t.Output); err != nil {
			return nil, err
		}
		if t.ID != previous {
			return nil, fmt.Errorf("turn %s came in place of %s", t.ID, previous)
		}
		turns = append(turns, t)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if id != "" {
		return nil, ErrIncomplete
	}
	slices.Reverse(turns)
	return turns, nil
}

// Answer returns a stored response, without its items, and its items. It returns ErrNotFound if the
// response is not visible.
func (r *Responses) Answer(ctx context.Context, account, id string) (object, output []byte, err error) {
	err = r.opts.DB.View(ctx, func(tx *store.Tx) error {
		if _, err := r.findTx(tx, account, id); err != nil {
			return err
		}
		if err := tx.QueryRow(readAnswer, id).Scan(&output, &object); err != nil {
			return fmt.Errorf("read a response: %w", err)
		}
		return nil
	})
	return object, output, err
}
