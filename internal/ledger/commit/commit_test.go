package commit

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// start runs a committer. The returned function closes it and returns the request log.
func start(t *testing.T, db *store.DB, o Observer) (c *Committer, stop func() []requestlog.Receipt) {
	t.Helper()
	n, err := node.Join(t.Context(), node.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	c = New(Options{DB: db, Node: n, LockTimeout: time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler), Observer: o})
	c.Start()
	stop = func() (log []requestlog.Receipt) {
		t.Helper()
		if err := c.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := db.View(context.Background(), func(tx *store.Tx) error {
			page, err := requestlog.ListTx(tx, requestlog.Selection{Limit: 10_000})
			log = page.Receipts
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return log
	}
	return c, stop
}
