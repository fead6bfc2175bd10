package response_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/response"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// open returns the responses of a database with a retention of a day.
func open(db *store.DB, storage int64) *response.Responses {
	return response.New(response.Options{DB: db, Retention: 24 * time.Hour, Storage: storage})
}

// save stores a response with the items `"iID"` and `"oID"`, and continues previous unless it is empty.
func save(t testing.TB, r *response.Responses, account, id, previous string) {
	t.Helper()
	if err := trySave(t, r, account, id, previous, 0); err != nil {
		t.Fatalf("%s after %q: %v", id, previous, err)
	}
}

// trySave is save with an answer of more bytes.
func trySave(t testing.TB, r *response.Responses, account, id, previous string, more int) error {
	t.Helper()
	turn := &response.NewTurn{ID: id, Account: account, Input: []byte(`"i` + id + `"`), Output: []byte(`"o` + id + `"`),
		Object: append([]byte(`{"id":"`+id+`","output":[]}`), bytes.Repeat([]byte(" "), more)...)}
	if previous != "" {
		var err error
		if turn.Previous, err = r.Find(t.Context(), account, previous); err != nil {
			return err
		}
	}
	return r.Save(t.Context(), turn)
}

// items returns the items of a response's conversation, or its error.
func items(t testing.TB, r *response.Responses, account, id string) string {
	t.Helper()
	c, err := r.Find(t.Context(), account, id)
	if err != nil {
		return err.Error()
	}
	turns, err := r.Turns(t.Context(), c)
	if err != nil {
		return err.Error()
	}
	var all []string
	size := 0
	for _, turn := range turns {
		size += len(turn.Input) + len(turn.Output)
		all = append(all, strings.Trim(string(turn.Input), `"`), strings.Trim(string(turn.Output), `"`))
	}
	if int64(size) != c.Size {
		t.Errorf("%s: Size is %d, want %d", id, c.Size, size)
	}
	return strings.Join(all, " ")
}

// stored returns the number of rows, after a check of the account's size against the sum of its rows.
func stored(t testing.TB, db *store.DB) (rows int) {
	t.Helper()
	storetest.View(t, db, func(tx *store.Tx) error {
		var wrong int
		if err := tx.QueryRow(`SELECT COUNT(*) FROM response_account a WHERE bytes <>
			(SELECT COALESCE(SUM(r.bytes), 0) FROM response r WHERE r.account = a.account)`).Scan(&wrong); err != nil {
			return err
		}
		if wrong > 0 {
			t.Errorf("the sizes of %d accounts are not the sum of their rows", wrong)
		}
		return tx.QueryRow(`SELECT COUNT(*) FROM response`).Scan(&rows)
	})
	return rows
}

var notFound = response.ErrNotFound.Error()

// TestChain checks that a response has the items of all turns before it, also with two responses that
// continue the same one, and only for its account.
func TestChain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		r := open(db, 0)
		save(t, r, "a", "1", "")
		save(t, r, "a", "2", "1")
		save(t, r, "a", "3", "2")
		save(t, r, "a", "3b", "2")
		save(t, r, "b", "4", "")
		save(t, r, "a", "1", "") // a repeated write
		for id, want := range map[string]string{"1": "i1 o1", "2": "i1 o1 i2 o2", "3": "i1 o1 i2 o2 i3 o3", "3b": "i1 o1 i2 o2 i3b o3b",
			"4": notFound, "5": notFound} {
			if got := items(t, r, "a", id); got != want {
				t.Errorf("%s: got %q, want %q", id, got, want)
			}
		}
		if err := trySave(t, r, "b", "6", "3", 0); !errors.Is(err, response.ErrNotFound) {
			t.Errorf("continuing another account's response: %v, want ErrNotFound", err)
		}
		for _, account := range []string{"a", "b"} {
			object, output, err := r.Answer(t.Context(), account, "3")
			if account == "b" {
				if !errors.Is(err, response.ErrNotFound) {
					t.Errorf("another account's response: %v, want ErrNotFound", err)
				}
				continue
			}
			if err != nil || string(output) != `"o3"` || string(object) != `{"id":"3","output":[]}` {
				t.Errorf("got %s and %s, %v", object, output, err)
			}
		}
		if n := stored(t, db); n != 5 {
			t.Errorf("%d rows, want 5", n)
		}
	})
}

// TestDelete checks that a deleted response is gone, that responses continuing it keep its items, and
// that no row stays once nothing needs it.
func TestDelete(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		r := open(db, 0)
		del := func(account, id string, want error) {
			t.Helper()
			if err := r.Delete(t.Context(), account, id); !errors.Is(err, want) {
				t.Errorf("Delete(%s, %s): %v, want %v", account, id, err, want)
			}
		}
		save(t, r, "a", "1", "")
		save(t, r, "a", "2", "1")
		save(t, r, "a", "3", "2")
		save(t, r, "a", "3b", "2")
		del("b", "2", response.ErrNotFound)
		del("a", "2", nil)
		del("a", "2", response.ErrNotFound)
		del("a", "1", nil)
		if got, want := items(t, r, "a", "3"), "i1 o1 i2 o2 i3 o3"; got != want {
			t.Errorf("after the deletion of turns before it: got %q, want %q", got, want)
		}
		if got := items(t, r, "a", "2"); got != notFound {
			t.Errorf("deleted: got %q, want %q", got, notFound)
		}
		if err := trySave(t, r, "a", "4", "2", 0); !errors.Is(err, response.ErrNotFound) {
			t.Errorf("continuing a deleted response: %v, want ErrNotFound", err)
		}
		del("a", "3", nil)
		if n := stored(t, db); n != 3 {
			t.Errorf("%d rows while 3b needs two more, want 3", n)
		}
		del("a", "3b", nil)
		if n := stored(t, db); n != 0 {
			t.Errorf("%d rows after all are deleted, want 0", n)
		}
	})
}

// TestDeleteLongChain deletes a chain from its beginning: the last deletion removes all rows, in
// several transactions.
func TestDeleteLongChain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		r := open(db, 0)
		const turns = 1200
		storetest.Update(t, db, func(tx *store.Tx) error { return insertChain(tx, turns) })
		if err := r.Delete(t.Context(), "a", fmt.Sprintf("c%05d", turns)); err != nil {
			t.Fatal(err)
		}
		if n := stored(t, db); n != 0 {
			t.Errorf("%d rows, want 0", n)
		}
	})
}

// insertChain writes a chain c00001, c00002 … of which all but the last are deleted.
func insertChain(tx *store.Tx, turns int) error {
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`INSERT INTO response_account (account, bytes) VALUES ('a', $1)`, turns); err != nil {
		return err
	}
	previous := ""
	for n := 1; n <= turns; n++ {
		id, used, deleted := fmt.Sprintf("c%05d", n), int64(0), 1
		if n == 1 {
			used = now
		}
		if n == turns {
			deleted = 0
		}
		if _, err := tx.Exec(`INSERT INTO response
			(id, account, chain, previous, created_ms, used_ms, deleted, bytes, context, input, output, object)
			VALUES ($1, 'a', 'c00001', $2, $3, $4, $5, 1, $6, $7, $7, $7)`,
			id, previous, now, used, deleted, n, []byte(`0`)); err != nil {
			return err
		}
		previous = id
	}
	return nil
}

// TestRetention checks that a response expires by its own age, that its items stay for the responses
// that continue it, and that Sweep deletes a conversation after the last of them.
func TestRetention(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		r := open(db, 0)
		sweep := func(want int) {
			t.Helper()
			if err := r.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := stored(t, db); n != want {
				t.Errorf("%d rows after a sweep, want %d", n, want)
			}
		}
		save(t, r, "a", "1", "")
		save(t, r, "a", "x", "")
		clock.Advance(20 * time.Hour)
		save(t, r, "a", "2", "1")
		sweep(3)
		clock.Advance(5*time.Hour + time.Minute)
		sweep(2)
		if got := items(t, r, "a", "1"); got != notFound {
			t.Errorf("an old response: got %q, want %q", got, notFound)
		}
		if got, want := items(t, r, "a", "2"), "i1 o1 i2 o2"; got != want {
			t.Errorf("a response that continues an old one: got %q, want %q", got, want)
		}
		clock.Advance(20*time.Hour - 2*time.Minute)
		if got := items(t, r, "a", "2"); got != notFound {
			t.Errorf("an old response: got %q, want %q", got, notFound)
		}
		sweep(2) // an earlier request may still continue it
		clock.Advance(2 * time.Minute)
		sweep(0)
	})
}

// TestRetentionOff expects nothing to be visible without a retention, and Sweep to delete all rows.
func TestRetentionOff(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		r := open(db, 0)
		for n := range 1100 {
			save(t, r, fmt.Sprint("a", n%3), fmt.Sprint("r", n), "")
		}
		off := response.New(response.Options{DB: db})
		if got := items(t, off, "a0", "r0"); got != notFound {
			t.Errorf("got %q, want %q", got, notFound)
		}
		if err := off.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := stored(t, db); n != 0 {
			t.Errorf("%d rows, want 0", n)
		}
	})
}

// TestStorage expects an account's storage to hold the conversations used last, with nothing
// else deleted.
func TestStorage(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		r := open(db, 20_000)
		save(t, r, "b", "other", "")
		save(t, r, "a", "1", "")
		last := "1"
		for n := range 30 {
			clock.Advance(time.Second)
			save(t, r, "a", fmt.Sprint("x", n), "")
			save(t, r, "a", fmt.Sprint("1.", n), last)
			last = fmt.Sprint("1.", n)
		}
		_ = stored(t, db)
		if got := items(t, r, "a", "x0"); got != notFound {
			t.Errorf("the oldest conversation: got %q, want %q", got, notFound)
		}
		if got := items(t, r, "a", "1.29"); !strings.HasPrefix(got, "i1 o1 i1.0 o1.0") {
			t.Errorf("the conversation in use lost its beginning: %q", got)
		}
		if got, want := items(t, r, "b", "other"), "iother oother"; got != want {
			t.Errorf("another account's conversation: got %q, want %q", got, want)
		}
		if err := trySave(t, r, "a", "huge", "", 20_000); !errors.Is(err, response.ErrFull) {
			t.Errorf("a response larger than the storage: %v, want ErrFull", err)
		}
		if got := items(t, r, "a", "1.29"); got == notFound {
			t.Error("a response that never fits has displaced others")
		}
		if err := trySave(t, r, "a", "large", "", 18_000); err != nil {
			t.Errorf("a response that fits alone: %v", err)
		}
		if err := trySave(t, r, "a", "too large", "large", 18_000); !errors.Is(err, response.ErrFull) {
			t.Errorf("a turn that does not fit beside its own conversation: %v, want ErrFull", err)
		}
	})
}

// TestConcurrentSaves lets two nodes store for the same accounts, continue and delete at once.
func TestConcurrentSaves(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		nodes := [2]*response.Responses{open(db, 60_000), open(db, 60_000)}
		if db.Dialect() == store.PostgreSQL {
			other := storetest.Open(t, url, store.Options{})
			nodes[1] = open(other, 60_000)
		}
		var wg sync.WaitGroup
		for n, r := range nodes {
			for i := range 8 {
				wg.Go(func() {
					previous := ""
					for turn := range 12 {
						id := fmt.Sprintf("%d.%d.%d", n, i, turn)
						err := trySave(t, r, fmt.Sprint("a", i%3), id, previous, 100)
						if err != nil && !errors.Is(err, response.ErrNotFound) && !errors.Is(err, response.ErrFull) {
							t.Errorf("%s: %v", id, err)
						}
						if previous = id; turn%4 == 3 || err != nil {
							previous = ""
						}
						if err == nil && turn%5 == 4 {
							if err := nodes[1-n].Delete(t.Context(), fmt.Sprint("a", i%3), id); err != nil && !errors.Is(err, response.ErrNotFound) {
								t.Errorf("delete %s: %v", id, err)
							}
							previous = ""
						}
					}
				})
			}
		}
		wg.Wait()
		if n := stored(t, db); n == 0 {
			t.Error("nothing is stored")
		}
	})
}

// BenchmarkTurns reads a conversation of 10,000 turns.
func BenchmarkTurns(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.PostgreSQL} {
		b.Run(name, func(b *testing.B) {
			db := storetest.Open(b, url(b), store.Options{})
			storetest.Update(b, db, func(tx *store.Tx) error { return insertChain(tx, 10_000) })
			r := open(db, 0)
			c, err := r.Find(context.Background(), "a", "c10000")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if turns, err := r.Turns(context.Background(), c); err != nil || len(turns) != 10_000 {
					b.Fatal(len(turns), err)
				}
			}
		})
	}
}
