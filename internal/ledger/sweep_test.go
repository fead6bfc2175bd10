package ledger

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestNodeDeclaredDeadWakes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		plain, stream := f.mustAdmit("a", money.USD), f.mustAdmit("a", money.USD)
		stream.Progress(Progress{Cost: money.USD / 4, Tokens: Tokens{Prompt: 3, Completion: 4}, Line: "l"})
		f.mustAdmit("a", money.USD).Release(failed()) // its batch also writes the progress

		ctx := context.Background()
		epoch := f.node.Epoch()
		f.fence()
		// The settlement after a pause is refused, and the node rejoins.
		if err := plain.Settle(ctx, billed(money.USD)); !errors.Is(err, ErrNotSettled) {
			t.Errorf("settled by a dead node: got %v, want ErrNotSettled", err)
		}
		if f.node.Epoch() == epoch {
			t.Fatalf("the node has the epoch %s, want a new one", epoch)
		}
		h := f.mustAdmit("a", money.USD)
		if err := f.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if err := stream.Settle(ctx, billed(money.USD)); !errors.Is(err, ErrNotSettled) {
			t.Errorf("settled after the sweep: got %v, want ErrNotSettled", err)
		}
		if err := h.Settle(ctx, billed(money.USD)); err != nil {
			t.Errorf("settled in the new epoch: got %v, want no error", err)
		}
		if st := f.state("a"); st.Held != 0 || st.Balance != 10*money.USD-money.USD-money.USD/4 {
			t.Errorf("%+v; want one charge of 1 and the progress of 0.25", st)
		}
		nodes, err := node.List(ctx, db)
		nodes = slices.DeleteFunc(nodes, func(n node.Record) bool { return n.Dead })
		if err != nil || len(nodes) != 1 {
			t.Errorf("living nodes %v, %v; want the new life alone", nodes, err)
		}
		f.checkAudit()
	})
}

func TestOtherNodeSweepsOnce(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PostgreSQL(t), store.Options{})
	a, b, c := start(t, db), start(t, db), start(t, db)
	a.open("a", 1000*money.USD, 0, KeyLimits{})
	for i := range 300 {
		h := a.mustAdmit("a", money.USD)
		if i%2 == 0 {
			h.Progress(Progress{Cost: 10, Tokens: Tokens{Completion: 1}})
		}
	}
	a.mustAdmit("a", 0).Release(failed())
	a.fence()
	var group sync.WaitGroup
	for _, l := range []*fixture{b, c, b, c} {
		group.Go(func() {
			if err := l.committer.Sweep(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if st := a.state("a"); st.Held != 0 || st.Balance != 1000*money.USD-1500 {
		t.Errorf("%+v; want 150 charges of 10 nano-dollars", st)
	}
	b.checkAudit()
}

func TestNextStartSweepsTheFormerProcess(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	dead := New(Options{DB: db, Node: join(t, db)})
	if err := dead.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Close(context.Background()) })
	f := &fixture{Ledger: dead, t: t}
	f.open("a", money.USD, 0, KeyLimits{})
	f.mustAdmit("a", money.USD)
	next := start(t, db)
	if st := next.state("a"); st.Held != 0 || st.Balance != money.USD {
		t.Errorf("%+v; want the hold given back", st)
	}
	next.checkAudit()
}
