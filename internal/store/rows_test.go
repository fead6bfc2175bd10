package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestRows writes the same rows on both databases: many, one, none, existing ones and missing ones.
func TestRows(t *testing.T) {
	t.Parallel()
	insert := store.Insert("thing", "id text, n bigint, note 'new', mark text", "")
	add := store.Insert("thing", "id text, n bigint, note 'again', mark text",
		"ON CONFLICT (id) DO UPDATE SET n = thing.n + excluded.n, note = excluded.note")
	change := store.Update("thing", "n bigint, note 'changed', id text")
	remove := store.Delete("thing", "id text =, n bigint <=")
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		run := func(fill func(q *store.Batch)) error {
			session, err := db.Session(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			q := db.NewBatch()
			q.Begin("1s", "1s")
			fill(q)
			q.Commit()
			err = session.Run(context.Background(), q)
			return errors.Join(err, session.Close(err == nil))
		}
		if err := run(func(q *store.Batch) {
			q.Exec(nil, `CREATE TABLE thing (id TEXT NOT NULL PRIMARY KEY, n BIGINT NOT NULL, note TEXT NOT NULL, mark TEXT NOT NULL)`)
		}); err != nil {
			t.Fatal(err)
		}
		if err := run(func(q *store.Batch) {
			q.Rows(insert, []any{"a", int64(1), `{"x",'y'}`, "b", int64(-2), "", "c", int64(1) << 62, "é\\,"})
			q.Rows(insert, nil)
			q.Rows(insert, []any{"d", int64(4), "NULL"})
			q.Rows(add, []any{"b", int64(5), "left out", "e", int64(6), "first"})
			q.Rows(change, []any{int64(10), "a", int64(11), "nobody", int64(12), "d"})
		}); err != nil {
			t.Fatal(err)
		}
		want := []string{`a 10 changed {"x",'y'}`, `b 3 again `, `c 4611686018427387904 new é\,`, `d 12 changed NULL`, `e 6 again first`}
		if got := things(t, db); !slices.Equal(got, want) {
			t.Errorf("rows %q; want %q", got, want)
		}
		if err := run(func(q *store.Batch) { q.Rows(insert, []any{"f", int64(1), "", "a", int64(1), ""}) }); err == nil {
			t.Error("the insert of an existing row succeeded, want an error")
		}
		if got := things(t, db); !slices.Equal(got, want) {
			t.Errorf("rows after a refused insert %q; want %q", got, want)
		}
		var many []any
		for i := range 21 { // more than one statement's, and some left over
			many = append(many, fmt.Sprintf("m%02d", i), int64(i), fmt.Sprintf("mark %d", i))
			want = append(want, fmt.Sprintf("m%02d %d again mark %d", i, 2*i, i))
		}
		if err := run(func(q *store.Batch) {
			q.Rows(insert, many)
			q.Rows(add, many)
		}); err != nil {
			t.Fatal(err)
		}
		if got := things(t, db); !slices.Equal(got, want) {
			t.Errorf("many rows %q; want %q", got, want)
		}
		if err := run(func(q *store.Batch) {
			q.Rows(remove, []any{"a", int64(10), "b", int64(2), "nobody", int64(9), "e", int64(7)})
		}); err != nil {
			t.Fatal(err)
		}
		want = slices.DeleteFunc(want, func(row string) bool { return row[:2] == "a " || row[:2] == "e " })
		if got := things(t, db); !slices.Equal(got, want) {
			t.Errorf("rows after deletions %q; want %q", got, want)
		}
	})
}

// things are the rows of the table thing, each as a line.
func things(t *testing.T, db *store.DB) []string {
	t.Helper()
	var out []string
	err := db.View(context.Background(), func(tx *store.Tx) error {
		out = nil
		rows, err := tx.Query(`SELECT id, n, note, mark FROM thing ORDER BY id`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, note, mark string
			var n int64
			if err := rows.Scan(&id, &n, &note, &mark); err != nil {
				return err
			}
			out = append(out, fmt.Sprintf("%s %d %s %s", id, n, note, mark))
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
