package requestlog

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// segmentRows is the number of consecutive receipt numbers in a segment of an account's log. A row
// of ledger_key_part records that a key has receipts in a segment, so that a list of a rarely used
// key need not examine the whole log. An index by key would need an entry for each receipt and
// would make each hold and settlement 4 % slower.
const segmentRows = 128

// SegmentOf returns the segment of the receipt with number seq in an account's log.
func SegmentOf(seq int64) int64 { return seq / segmentRows }

var insertSegments = store.Insert("ledger_key_part", "key text, part bigint", "ON CONFLICT DO NOTHING")

// InsertSegments returns the statement that records segments. Each of its rows has a key and a
// segment. Recording a segment twice is a no-op.
func InsertSegments() *store.Rows { return insertSegments }

const (
	// segmentsRead is the number of a key's segments read at a time. segmentsJoined is the maximum
	// number of adjacent segments examined by one query.
	segmentsRead   = 64
	segmentsJoined = 8

	segmentsBelow = `SELECT part FROM ledger_key_part WHERE key = $1 AND part <= $2 AND part >= $3 ORDER BY part DESC LIMIT $4`
	oldestSeq     = `SELECT seq FROM ledger_receipt WHERE account = $1 ORDER BY seq LIMIT 1`
	oldestOld     = `SELECT seq FROM ` + audit.Unfolded + ` AND account = $1 ORDER BY seq LIMIT 1`
	lastBelow     = `SELECT id FROM ledger_receipt WHERE account = $1 AND (seq, id) >= ($2, $3) ORDER BY seq, id LIMIT 1`
)

// bySegmentsTx examines the key's recorded segments.
func (l *listing) bySegmentsTx() error {
	for l.low.below(l.pos) {
		segments, err := l.segmentsTx()
		if err != nil || len(segments) == 0 {
			return err
		}
		for len(segments) > 0 {
			n := 1
			for n < min(len(segments), segmentsJoined) && segments[n] == segments[n-1]-1 {
				n++
			}
			if err := l.segmentTx(segments[n-1], segments[0]); err != nil || l.page.More {
				return err
			}
			segments = segments[n:]
		}
	}
	return nil
}

// segmentTx examines the segments first to last.
func (l *listing) segmentTx(first, last int64) error {
	if end := (position{seq: (last + 1) * segmentRows}); end.below(l.pos) {
		l.pos = end
	}
	low := newer(l.low, position{seq: first * segmentRows})
	if err := l.readTx(low); err != nil || l.page.More {
		return err
	}
	l.pos = low
	if l.left -= int(last-first+1) * segmentRows; l.left > 0 {
		return nil
	}
	var oldest string
	err := l.tx.QueryRow(lastBelow, l.Account, low.seq, low.id).Scan(&oldest)
	if errors.Is(err, sql.ErrNoRows) { // the receipt and all older receipts are deleted
		return nil
	}
	if err != nil {
		return err
	}
	return l.stopTx(oldest)
}

// segmentsTx returns the next recorded segments of the key, newest first.
func (l *listing) segmentsTx() (segments []int64, err error) {
	newest := l.pos.seq
	if l.pos.id == "" {
		newest-- // nothing is examined yet
	}
	rows, err := l.tx.Query(segmentsBelow, l.Key, SegmentOf(newest), SegmentOf(l.low.seq), segmentsRead)
	if err != nil {
		return nil, fmt.Errorf("read the segments of a key: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var segment int64
		if err := rows.Scan(&segment); err != nil {
			return nil, fmt.Errorf("read the segments of a key: %w", err)
		}
		segments = append(segments, segment)
	}
	return segments, rows.Err()
}

// newer returns the newer of two positions in an account's log.
func newer(p, q position) position {
	if p.below(q) {
		return q
	}
	return p
}

// Deleted are deleted receipts of an account: their keys, with repetitions, and their lowest and
// highest number.
type Deleted struct {
	Keys        []string
	First, Last int64
}

// TrimIndexTx deletes the records of segments whose receipts are all deleted, if the receipts in
// deleted reach the end of a segment.
func TrimIndexTx(tx *store.Tx, account string, deleted Deleted) error {
	if SegmentOf(deleted.First) == SegmentOf(deleted.Last+1) {
		return nil
	}
	oldest := int64(-1) // none
	for _, text := range [...]string{oldestSeq, oldestOld} {
		var seq int64
		err := tx.QueryRow(text, account).Scan(&seq)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case oldest < 0 || seq < oldest:
			oldest = seq
		}
	}
	if oldest < 0 {
		oldest = deleted.Last
	}
	slices.Sort(deleted.Keys)
	for _, key := range slices.Compact(deleted.Keys) {
		if _, err := tx.Exec(`DELETE FROM ledger_key_part WHERE key = $1 AND part < $2`, key, SegmentOf(oldest)); err != nil {
			return err
		}
	}
	return nil
}
