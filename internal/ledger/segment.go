package ledger

import (
	"context"
	"fmt"
	"maps"

	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// segmentCache holds the newest committed segment of the log of each key. A segment is deleted only
// with all of its receipts and all earlier segments.
type segmentCache map[string]int64

func (k *segmentCache) add(parts segmentCache) {
	if len(*k)+len(parts) > maxCached {
		*k = segmentCache{}
	}
	maps.Copy(*k, parts)
}

// writeSegments records the segments of the batch's receipts.
func (b *batch) writeSegments(q *store.Batch) {
	b.newSegments = segmentCache{}
	var rows []any
	for i := range b.Receipts {
		r := &b.Receipts[i]
		key, segment := r.Hold.Key, requestlog.SegmentOf(r.Seq)
		if key == "" || r.Hold.Account == "" {
			continue
		}
		if known, ok := b.segments[key]; ok && known == segment {
			continue
		}
		if recorded, ok := b.newSegments[key]; ok && recorded == segment {
			continue
		}
		b.newSegments[key] = segment
		rows = append(rows, key, segment)
	}
	q.Rows(requestlog.InsertSegments(), rows)
}

// IndexKeys records segments that a former version did not record: before the upgrade, or on nodes
// not yet upgraded. It is one step of Run.
func (l *Ledger) IndexKeys(ctx context.Context) error {
	for account := ""; ; {
		var next string
		more := false
		err := l.db.Update(ctx, func(tx *store.Tx) (err error) {
			if next, err = requestlog.UnindexedTx(tx, account); err != nil || next == "" {
				return err
			}
			more, err = requestlog.IndexTx(tx, next)
			return err
		})
		if err != nil {
			return fmt.Errorf("record the segments of the request log: %w", err)
		}
		if next == "" {
			return nil
		}
		if !more {
			account = next
		}
	}
}
