package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestConflictsAreRepeated lets the first attempts of a transaction and of reads fail as the server
// does, after they have written.
func TestConflictsAreRepeated(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.Update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(`CREATE TABLE note (id TEXT PRIMARY KEY)`); return err })
		for _, code := range []string{"40001", "40P01", "55P03", "57P01"} {
			attempts := 0
			storetest.Update(t, db, func(tx *store.Tx) error {
				attempts++
				if _, err := tx.Exec(`INSERT INTO note (id) VALUES ($1)`, code); err != nil || attempts == 8 {
					return err
				}
				return fmt.Errorf("write: %w", &pgconn.PgError{Code: code})
			})
			if attempts != 8 {
				t.Errorf("%s: got %d attempts of a transaction, want 8", code, attempts)
			}
		}
		for _, code := range []string{"40001", "40P01", "57P01"} {
			attempts, n := 0, 0
			storetest.View(t, db, func(tx *store.Tx) error {
				attempts++
				ids, err := store.Column[string](tx, `SELECT id FROM note`)
				if n = len(ids); err != nil || attempts == 3 {
					return err
				}
				return fmt.Errorf("read: %w", &pgconn.PgError{Code: code})
			})
			if attempts != 3 || n != 4 {
				t.Errorf("%s: got %d attempts of a read with %d rows, want 3 with 4", code, attempts, n)
			}
		}
		attempts := 0
		err := db.Update(t.Context(), func(*store.Tx) error { attempts++; return &pgconn.PgError{Code: "42601"} })
		if err == nil || attempts != 1 {
			t.Errorf("a wrong statement: got %v after %d attempts, want an error after 1", err, attempts)
		}
	})
}

// TestDeadlockIsRepeated lets two transactions lock two rows in opposite order.
func TestDeadlockIsRepeated(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.Update(t, db, func(tx *store.Tx) error {
			_, err := tx.Exec(`CREATE TABLE counter (id TEXT PRIMARY KEY, n BIGINT NOT NULL)`)
			if err == nil {
				_, err = tx.Exec(`INSERT INTO counter (id, n) VALUES ('a', 0), ('b', 0)`)
			}
			return err
		})
		var both, group sync.WaitGroup
		attempts := [2]int{}
		both.Add(2)
		for i, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
			group.Go(func() {
				err := db.Update(t.Context(), func(tx *store.Tx) error {
					attempts[i]++
					for j, id := range order {
						if _, err := tx.Exec(`UPDATE counter SET n = n + 1 WHERE id = $1`, id); err != nil {
							return err
						}
						if j == 0 && attempts[i] == 1 && tx.Dialect() == store.PostgreSQL {
							both.Done()
							both.Wait()
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if db.Dialect() == store.PostgreSQL && attempts[0]+attempts[1] < 3 {
			t.Errorf("got attempts %v, want at least 3, because of a deadlock", attempts)
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			var a, b int
			err := tx.QueryRow(`SELECT (SELECT n FROM counter WHERE id = 'a'), (SELECT n FROM counter WHERE id = 'b')`).Scan(&a, &b)
			if err == nil && (a != 2 || b != 2) {
				t.Errorf("counted %d and %d, want 2 and 2", a, b)
			}
			return err
		})
	})
}

// TestStricterIsolation lets the transactions of two nodes conflict while the server's default level
// of isolation is stricter than read committed: on one row, on rows with the same new key, and on
// rows that each transaction reads before it writes another one.
func TestStricterIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"serializable", "repeatable read"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			storetest.EachURL(t, func(t *testing.T, url string) {
				dbs := storetest.TwoNodes(t, storetest.WithIsolation(t, url, level))
				storetest.Update(t, dbs[0], func(tx *store.Tx) error {
					_, err := tx.Exec(`CREATE TABLE counter (id TEXT PRIMARY KEY, n BIGINT NOT NULL)`)
					if err == nil {
						_, err = tx.Exec(`INSERT INTO counter (id, n) VALUES ('hot', 0)`)
					}
					return err
				})
				const callers, rounds, limit = 8, 10, 2
				for round := range rounds {
					var group sync.WaitGroup
					for caller := range callers {
						db := dbs[caller%2]
						group.Go(func() {
							storetest.Update(t, db, func(tx *store.Tx) error { return addLimited(tx, round, caller, limit) })
							storetest.Update(t, db, func(tx *store.Tx) error { return countRound(tx, round) })
						})
					}
					group.Wait()
				}
				storetest.View(t, dbs[0], func(tx *store.Tx) error {
					var hot, first, limited int
					err := tx.QueryRow(`SELECT (SELECT n FROM counter WHERE id = 'hot'), (SELECT COUNT(*) FROM counter WHERE id LIKE 'round%'),
						(SELECT COUNT(*) FROM counter WHERE id LIKE 'limited%')`).Scan(&hot, &first, &limited)
					if err == nil && (hot != callers*rounds || first != rounds || limited != rounds*limit) {
						t.Errorf("counted %d, %d rounds, %d limited rows; want %d, %d, %d", hot, first, limited, callers*rounds, rounds, rounds*limit)
					}
					return err
				})
			})
		})
	}
}

// countRound adds one to a shared row, and adds the row of a round unless there is one.
func countRound(tx *store.Tx, round int) error {
	if err := tx.Serialize("round"); err != nil {
		return err
	}
	key := fmt.Sprint("round ", round)
	var n, known int
	err := tx.QueryRow(`SELECT n, (SELECT COUNT(*) FROM counter WHERE id = $1) FROM counter WHERE id = 'hot'`, key).Scan(&n, &known)
	if err != nil {
		return err
	}
	if known == 0 {
		if _, err := tx.Exec(`INSERT INTO counter (id, n) VALUES ($1, 0)`, key); err != nil {
			return err
		}
	}
	_, err = tx.Exec(`UPDATE counter SET n = $1 WHERE id = 'hot'`, n+1)
	return err
}

// addLimited adds a row to a round unless the round has limit rows already. Callers wait for each
// other.
func addLimited(tx *store.Tx, round, caller, limit int) error {
	if err := tx.Serialize("limited"); err != nil {
		return err
	}
	var rows int
	if err := tx.QueryRow(`SELECT COUNT(*) FROM counter WHERE id LIKE 'limited%' AND n = $1`, round).Scan(&rows); err != nil || rows >= limit {
		return err
	}
	_, err := tx.Exec(`INSERT INTO counter (id, n) VALUES ($1, $2)`, fmt.Sprintf("limited %d %d", round, caller), round)
	return err
}
