package rows

import (
	"maps"

	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/store"
)

// segmentCache holds the newest committed segment of each key. The cache stays valid when older
// segments are deleted, because a segment is deleted only after all earlier segments.
type segmentCache map[string]int64

// add adds the segments of a committed batch.
func (c *segmentCache) add(segments segmentCache) {
	if *c == nil || len(*c)+len(segments) > maxCached {
		*c = segmentCache{}
	}
	maps.Copy(*c, segments)
}

// writeSegments records the segments of the batch's receipts, except segments in the cache.
func (b *Books) writeSegments(q *store.Batch) {
	b.newSegments = segmentCache{}
	var rows []any
	for i := range b.Receipts {
		r := &b.Receipts[i]
		key, segment := r.Hold.Key, requestlog.SegmentOf(r.Seq)
		if key == "" || r.Hold.Account == "" {
			continue
		}
		if cached, ok := b.cache.segments[key]; ok && cached == segment {
			continue
		}
		if added, ok := b.newSegments[key]; ok && added == segment {
			continue
		}
		b.newSegments[key] = segment
		rows = append(rows, key, segment)
	}
	q.Rows(requestlog.InsertSegments(), rows)
}
