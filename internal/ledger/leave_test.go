package ledger

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// lockedBuffer is a log for concurrent writers.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestLeavingDuringAdmission checks that a client that leaves during its admission has one receipt
// and does not slow others: no batch fails.
func TestLeavingDuringAdmission(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var log lockedBuffer
		f := start(t, db, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		const callers = 300
		accounts := []string{"a", "b", "c", "d", "e", "f"} // enough accounts that no log row is sampled
		for _, account := range accounts {
			f.open(account, 1000*money.USD, 0, KeyLimits{})
		}
		var group sync.WaitGroup
		for i := range callers {
			wait := time.Duration(rand.IntN(4000)) * time.Microsecond
			if i%10 == 0 {
				wait = 0
			}
			group.Go(func() {
				ctx, leave := context.WithTimeout(context.Background(), wait)
				defer leave()
				h, err := f.Admit(ctx, admission(accounts[i%len(accounts)], money.USD/1000))
				switch {
				case err == nil:
					h.Release(End{Outcome: Closed, Status: StatusClosed, Code: string(fault.ClientClosed)})
				case !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
			})
		}
		group.Wait()
		f.close() // commits the queue
		list := f.requests(requestlog.Selection{Status: StatusClosed})
		if len(list) != callers {
			t.Errorf("got %d receipts, want one for each of %d requests", len(list), callers)
		}
		for _, account := range accounts {
			if st := f.state(account); st.Held != 0 || st.Balance != 1000*money.USD {
				t.Errorf("%+v; want nothing held or charged", st)
			}
		}
		if text := log.String(); strings.Contains(text, "cannot be committed") || strings.Contains(text, "is retried") {
			t.Errorf("got the log\n%.2000s\nwant no failed batches", text)
		}
		f.checkAudit()
	})
}
