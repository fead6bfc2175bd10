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
	now func() time.Time

	open atomic.Pointer[[]Announcement] // nil before the first Refresh
}

// NewBoard returns an empty board. Call Refresh before serving, and then Run. If log is nil, nothing is logged.
func NewBoard(db *store.DB, log *slog.Logger) *Board {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Board{db: db, log: log, now: time.Now}
}

// Run reads the announcements of other nodes once in ten seconds until ctx ends.
func (b *Board) Run(ctx context.Context) {
	loop.Run(ctx, loop.Loop{Room: "announcement", Does: "read the announcements", Log: b.log, Period: period, Later: true, Step: b.Refresh})
}

// Refresh reads the planned and active announcements.
func (b *Board) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	open, err := store.Read(ctx, b.db, func(tx *store.Tx) ([]Announcement, error) {
		now, err := tx.NowMS()
		if err != nil {
			return nil, err
		}
		return store.Collect(tx, scan, selectOpen, now)
	})
	if err != nil {
		return fmt.Errorf("read the announcements: %w", err)
	}
	b.open.Store(&open)
	return nil
}

// Active returns the active announcements, the latest first.
func (b *Board) Active() (active []Announcement) {
	open := b.open.Load()
	if open == nil {
		return nil
	}
	now := b.now().UnixMilli()
	for _, a := range *open {
		if a.State(now) == Active {
			active = append(active, a)
		}
	}
	return active
}
