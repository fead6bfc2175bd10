package ledger

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var done atomic.Int64
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				first := false
				err := db.Update(context.Background(), func(tx *store.Tx) error {
					first = false
					saved, err := AnswerTx(tx, Once{"s", "k", []byte("body"), time.Hour})
					if err != nil {
						return err
					}
					if saved != nil {
						if string(saved) != "answer" {
							t.Errorf("got the saved answer %q, want answer", saved)
						}
						return nil
					}
					first = true
					return SaveTx(tx, Once{"s", "k", []byte("body"), time.Hour}, []byte("answer"))
				})
				if err != nil {
					t.Error(err)
				}
				if first {
					done.Add(1)
				}
			})
		}
		group.Wait()
		if done.Load() != 1 {
			t.Errorf("done %d times; want once", done.Load())
		}
		err := db.Update(context.Background(), func(tx *store.Tx) error {
			_, err := AnswerTx(tx, Once{"s", "k", []byte("another"), time.Hour})
			return err
		})
		if !errors.Is(err, ErrOtherBody) {
			t.Errorf("another body: %v; want ErrOtherBody", err)
		}
	})
}
