package ledger

import (
	"context"
	"fmt"
	"maps"

	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// knownParts caches the newest committed part of the log for each key. A part is deleted only with
// all of its receipts and those of all earlier parts.
type knownParts map[string]int64

func (k *knownParts) add(parts knownParts) {
	if len(*k)+len(parts) > maxKnown {
		*k = knownParts{}
	}
	maps.Copy(*k, parts)
}

// writeParts records the parts of the log with the batch's receipts.
func (b *batch) writeParts(q *store.Batch) {
	b.newParts = knownParts{}
	var rows []any
	for i := range b.Receipts {
		r := &b.Receipts[i]
		key, part := r.Hold.Key, requestlog.PartOf(r.Seq)
		if key == "" || r.Hold.Account == "" {
			continue
		}
		if known, ok := b.parts[key]; ok && known == part {
			continue
		}
		if noted, ok := b.newParts[key]; ok && noted == part {
			continue
		}
		b.newParts[key] = part
		rows = append(rows, key, part)
	}
	q.Rows(requestlog.Parts(), rows)
}

// Part records the parts of keys omitted by a former version without parts: from before the
// upgrade, and from nodes not upgraded yet. It is one step of Run.
func (l *Ledger) Part(ctx context.Context) error {
	for account := ""; ; {
		var next string
		more := false
		err := l.db.Update(ctx, func(tx *store.Tx) (err error) {
			if next, err = requestlog.UnnotedTx(tx, account); err != nil || next == "" {
				return err
			}
			more, err = requestlog.NoteTx(tx, next)
			return err
		})
		if err != nil {
			return fmt.Errorf("note the parts of the request log: %w", err)
		}
		if next == "" {
			return nil
		}
		if !more {
			account = next
		}
	}
}
