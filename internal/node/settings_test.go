package node

import (
	"bytes"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	node := func(epoch, host string, pairs ...string) nodeDigests {
		c := nodeDigests{epoch, host, Digests{}}
		for i := 0; i < len(pairs); i += 2 {
			c.digests[pairs[i]] = pairs[i+1]
		}
		return c
	}
	for name, c := range map[string]struct {
		nodes []nodeDigests
		want  []SettingsDifference
	}{
		"none":  {},
		"one":   {nodes: []nodeDigests{node("e1", "a", "x", "1")}},
		"equal": {nodes: []nodeDigests{node("e1", "a", "x", "1"), node("e2", "b", "x", "1")}},
		"another version": {nodes: []nodeDigests{node("e1", "a", "x", "1", "old", "1"), node("e2", "b", "x", "1", "new", "2"), node("e3", "c")},
			want: nil},
		"two groups": {nodes: []nodeDigests{node("e1", "a", "x", "1", "y", "1", "z", "1"), node("e2", "b", "x", "2", "y", "1", "z", "2"),
			node("e3", "c", "x", "1", "y", "2", "z", "1")},
			want: []SettingsDifference{{[]string{"x", "z"}, [][]string{{"a", "c"}, {"b"}}}, {[]string{"y"}, [][]string{{"a", "b"}, {"c"}}}}},
		"secrets": {nodes: []nodeDigests{node("e1", "a", "x", "set", "x@k", "1"), node("e2", "b", "x", "set", "x@k", "2"),
			node("e3", "c", "x", "set", "x@other", "3")},
			want: []SettingsDifference{{[]string{"x"}, [][]string{{"a"}, {"b"}}}}},
		"one host": {nodes: []nodeDigests{node("e1", "", "x", "1"), node("e2", "a", "x", "2"), node("e3", "a", "x", "3")},
			want: []SettingsDifference{{[]string{"x"}, [][]string{{"(e1)"}, {"a (e2)"}, {"a (e3)"}}}}},
	} {
		if got := differences(c.nodes); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestLogOfDifferences follows nodes whose settings become different and equal again. On SQLite a node
// compares nothing.
func TestLogOfDifferences(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var log bytes.Buffer
		begin := func(epoch, level string) *Node {
			t.Helper()
			n, err := Begin(t.Context(), Options{DB: db, Settings: Digests{"low_balance": level, "sign_up": "1"},
				Log: slog.New(slog.NewTextHandler(&log, nil))}, epoch)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		leave := func(n *Node) {
			t.Helper()
			epoch := n.Epoch()
			if _, err := Fence(t.Context(), db, epoch, 0); err != nil {
				t.Fatal(err)
			}
			if err := Remove(t.Context(), db, epoch); err != nil {
				t.Fatal(err)
			}
		}
		a := begin("node_a", "5")
		check := func(lines int, words ...string) {
			t.Helper()
			for range 3 {
				if err := a.DeclareDead(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if db.OneProcess() {
				lines, words = 0, nil
			}
			if got := strings.Count(log.String(), "\n"); got != lines {
				t.Errorf("%d lines in the log, want %d:\n%s", got, lines, &log)
			}
			for _, w := range words {
				if !strings.Contains(log.String(), w) {
					t.Errorf("the log does not have %q:\n%s", w, &log)
				}
			}
			log.Reset()
		}
		check(0)
		b := begin("node_b", "5")
		check(0)
		c := begin("node_c", "10")
		check(1, "different settings", "settings=low_balance", "node_c")
		leave(b)
		check(0)
		leave(c)
		check(1, "the same settings again")
		if err := a.Rejoin(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(0)
		var rows int64
		storetest.View(t, db, func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT COUNT(*) FROM node_settings`).Scan(&rows)
		})
		if want := int64(2 - 2*store.Bool(db.OneProcess())); rows != want { // the dead epoch of a stays for a day
			t.Errorf("%d rows of settings, want %d", rows, want)
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			found, err := DifferencesTx(tx)
			if len(found) != 0 {
				t.Errorf("got %v, want no differences", found)
			}
			return err
		})
	})
}
