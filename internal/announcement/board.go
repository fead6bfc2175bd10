package announcement

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"tollgate/internal/loop"
	"tollgate/internal/store"
)

const (
	period      = 10 * time.Second
	readTimeout = 5 * time.Second
)

// Board has the planned and active announcements, in the memory of a node. It is safe for concurrent use.
type Board struct {
	db  *store.DB
	log *slog.Logger
	now func() time.Time // this node's clock, which may be wrong

	last atomic.Pointer[reading] // nil before the first Refresh
}

// reading is the result of a Refresh.
type reading struct {
	open  []Announcement // planned and active
	ahead time.Duration  // of this node's clock, compared with the database's
}

// NewBoard returns an empty board. Call Refresh before serving, and then Run. If log is nil, nothing is logged.
func NewBoard(db *store.DB, log *slog.Logger) *Board {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Board{db: db, log: log, now: time.Now}
}

// Run calls Refresh every ten seconds until ctx ends, because other nodes change announcements.
func (b *Board) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{Room: "announcement", Does: "read the announcements", Log: b.log, Period: period, Later: true, Step: b.Refresh})
}

// Refresh reads the planned and active announcements.
func (b *Board) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	last, err := store.Read(ctx, b.db, func(tx *store.Tx) (r reading, err error) {
		now, err := tx.NowMS()
		if err != nil {
			return r, err
		}
		r.ahead = b.now().Sub(time.UnixMilli(now))
		r.open, err = store.Collect(tx, scan, selectOpen, now)
		return r, err
	})
	if err != nil {
		return fmt.Errorf("read the announcements: %w", err)
	}
	b.last.Store(&last)
	return nil
}

// Active returns the active announcements, the latest first.
func (b *Board) Active() (active []Announcement) {
	last := b.last.Load()
	if last == nil {
		return nil
	}
	now := b.now().Add(-last.ahead).UnixMilli()
	for _, a := range last.open {
		if a.State(now) == Active {
			active = append(active, a)
		}
	}
	return active
}
