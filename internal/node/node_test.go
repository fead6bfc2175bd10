package node

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// join registers a node with the clock c.
func join(t *testing.T, db *store.DB, lease time.Duration, c *storetest.Clock) *Node {
	t.Helper()
	n, err := Join(t.Context(), Options{DB: db, Lease: lease, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// members returns the nodes in the table.
func members(t *testing.T, db *store.DB) (m Members) {
	t.Helper()
	m, err := store.Read(t.Context(), db, MembersTx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSilenceIsMeasuredByTheObserversClock checks that a node is dead after one lease on the
// observer's clock, and not earlier.
func TestSilenceIsMeasuredByTheObserversClock(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const lease = 12 * time.Second
		c, ctx := new(storetest.Clock), t.Context()
		n := join(t, db, lease, c)
		if err := Register(ctx, db, "node_other"); err != nil {
			t.Fatal(err)
		}
		declareDead := func() {
			t.Helper()
			if err := n.DeclareDead(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			declareDead()
			if err := Heartbeat(ctx, db, "node_other"); err != nil {
				t.Fatal("dead before the end of the lease: ", err)
			}
			declareDead() // sees the heartbeat
			for range 2 {
				c.Advance(lease/2 - time.Second)
				declareDead()
			}
		}
		if !members(t, db).Lives("node_other") {
			t.Error("the node is dead before the end of the lease, want alive")
		}
		c.Advance(2 * time.Second)
		declareDead()
		if err := Heartbeat(ctx, db, "node_other"); !errors.Is(err, ErrFenced) {
			t.Errorf("a heartbeat after a lease of silence: got %v, want ErrFenced", err)
		}
		if !members(t, db).Lives(n.Epoch()) {
			t.Error("the node declared itself dead, want alive")
		}
	})
}

// TestOutageDeclaresNobodyDead checks that the silence of a node does not count while the database
// is unavailable.
func TestOutageDeclaresNobodyDead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const lease = 12 * time.Second
		c := new(storetest.Clock)
		n := join(t, db, lease, c)
		if err := Register(t.Context(), db, "node_other"); err != nil {
			t.Fatal(err)
		}
		away, cancel := context.WithCancel(t.Context())
		cancel()
		for i, ctx := range []context.Context{t.Context(), t.Context(), away, t.Context(), t.Context()} {
			if err := n.DeclareDead(ctx); (err != nil) != (ctx == away) {
				t.Fatalf("call %d: got %v, want an error: %v", i, err, ctx == away)
			}
			c.Advance(lease / 2)
		}
		if !members(t, db).Lives("node_other") {
			t.Error("dead after an outage of the database, want alive")
		}
		if err := n.DeclareDead(t.Context()); err != nil {
			t.Fatal(err)
		}
		if members(t, db).Lives("node_other") {
			t.Error("alive after a lease of silence, want dead")
		}
	})
}

// TestNodeDiesAndRejoins follows a node through its death, a second life and its leave.
func TestNodeDiesAndRejoins(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, c := t.Context(), new(storetest.Clock)
		former := join(t, db, time.Minute, c)
		n := join(t, db, time.Minute, c)
		// On SQLite a second process proves that the first one has ended.
		if lives := members(t, db).Lives(former.Epoch()); lives == (db.Dialect() == store.SQLite) {
			t.Errorf("the former process is alive: %v, want %v", lives, !lives)
		}
		first := n.Epoch()
		if err := n.Beat(ctx); err != nil {
			t.Error(err)
		}
		if dead, err := Fence(ctx, db, first, 1); err != nil || !dead {
			t.Fatal(dead, err)
		}
		if err := n.Beat(ctx); !errors.Is(err, ErrFenced) || n.Epoch() != first {
			t.Errorf("%v, epoch %s; want no new life after a heartbeat", err, n.Epoch())
		}
		if err := n.Rejoin(ctx); err != nil {
			t.Fatal(err)
		}
		second := n.Epoch()
		m := members(t, db)
		if second == first || !m.Lives(second) || m.Lives(first) || !m.Knows(first) || m.Knows("node_never") {
			t.Errorf("got members %v, want %s alive and %s dead", m, second, first)
		}
		if living := m.Living(); !slices.Contains(living, second) || slices.Contains(living, first) || !slices.IsSorted(living) {
			t.Errorf("got living %v, want a sorted list with %s and without %s", living, second, first)
		}

		// The node's row stays while work is in progress.
		busy := func(still bool) func(context.Context, string) (bool, error) {
			return func(_ context.Context, epoch string) (bool, error) {
				if epoch != second {
					t.Errorf("busy was called with %s, want %s", epoch, second)
				}
				return still, nil
			}
		}
		if err := n.Leave(ctx, busy(true)); err != nil {
			t.Fatal(err)
		}
		if m := members(t, db); m.Lives(second) || !m.Knows(second) {
			t.Errorf("after a leave with work in progress: got members %v, want %s dead", m, second)
		}
		if err := n.Leave(ctx, busy(false)); err != nil {
			t.Fatal(err)
		}
		if members(t, db).Knows(second) {
			t.Error("the row exists after the leave, want it removed")
		}
	})
}

func TestFenceStopsAnEpoch(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		ctx := context.Background()
		if err := errors.Join(Register(ctx, db, "n"), Heartbeat(ctx, db, "n")); err != nil {
			t.Fatal(err)
		}
		if dead, err := Fence(ctx, db, "n", 0); dead || err != nil {
			t.Fatalf("fenced %v, %v with an old heartbeat; want false", dead, err)
		}
		if dead, err := Fence(ctx, db, "n", 1); !dead || err != nil {
			t.Fatalf("fenced %v, %v; want true", dead, err)
		}
		if err := Heartbeat(ctx, db, "n"); !errors.Is(err, ErrFenced) {
			t.Errorf("heartbeat of a dead epoch: %v; want ErrFenced", err)
		}
		if err := Register(ctx, db, "m"); err != nil {
			t.Fatal(err)
		}
		if dead, err := Fence(ctx, db, "m", 0); !dead || err != nil {
			t.Fatal(dead, err)
		}
		// On PostgreSQL a dead node's row stays, so that the node can learn the outcome of its last
		// batch.
		want := 0
		if db.Dialect() == store.PostgreSQL {
			want = 2
		}
		for _, want := range []int{want, 0} {
			if err := Forget(ctx, db, []string{"m", "n"}); err != nil {
				t.Fatal(err)
			}
			if nodes, err := List(ctx, db); err != nil || len(nodes) != want {
				t.Errorf("got nodes %v, %v; want %d", nodes, err, want)
			}
			clock.Advance(25 * time.Hour)
		}
	})
}

// TestNodesRecordTheirHost checks that the table has the host name of each node.
func TestNodesRecordTheirHost(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		want, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		n := join(t, db, time.Minute, new(storetest.Clock))
		hosts, err := store.Read(t.Context(), db, HostsTx)
		if err != nil {
			t.Fatal(err)
		}
		if len(hosts) != 1 || hosts[n.Epoch()] != want {
			t.Errorf("got hosts %v, want %s at %s", hosts, n.Epoch(), want)
		}
	})
}
