package commit

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tollgate/internal/node"
)

func TestFullDiskMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		named bool
	}{
		{&pgconn.PgError{Code: "53100", Message: "could not extend file"}, true},
		{fmt.Errorf("write the books: %w", syscall.ENOSPC), true},
		{unreachableError{syscall.EDQUOT}, true},
		{&pgconn.PgError{Code: "57P01"}, false},
		{errors.New("nothing was committed"), false},
	} {
		for name, f := range map[string]error{"a refused batch": Unavailable(c.err).Cause, "a late batch": explainFullDisk(c.err)} {
			if got := strings.Contains(f.Error(), "the disk of the database is full"); got != c.named || !errors.Is(f, c.err) {
				t.Errorf("%s: got %v, want a full disk named: %v", name, f, c.named)
			}
		}
	}
}

// TestWritable runs a sequence of writes and checks after each whether the database counts as
// writable.
func TestWritable(t *testing.T) {
	t.Parallel()
	full := errors.New("database or disk is full")
	const lease = 4 * time.Second
	var w writeState
	now := time.Now()
	for _, step := range []struct {
		name  string
		after time.Duration
		do    func()
		ok    bool
	}{
		{"nothing was written yet", 0, func() {}, false},
		{"the node was registered", 0, func() { w.recordBeat(nil, now) }, true},
		{"a heartbeat is late", lease, func() {}, true},
		{"the heartbeat is later than the lease", time.Millisecond, func() {}, false},
		{"a batch was committed", 0, func() { w.recordBatch(nil, now) }, true},
		{"a heartbeat failed", time.Second, func() { w.recordBeat(full, now) }, false},
		{"the next heartbeat succeeded", time.Second, func() { w.recordBeat(nil, now) }, true},
		{"a batch is tried again", 0, func() { w.recordBatch(full, now) }, false},
		{"a heartbeat succeeded, the batch did not", time.Second, func() { w.recordBeat(nil, now) }, false},
		{"the batch was committed", 0, func() { w.recordBatch(nil, now) }, true},
		{"another batch is tried again", 0, func() { w.recordBatch(full, now) }, false},
		{"the batch was given up", 0, w.recordIdle, true},
		{"the node was declared dead, by a write", lease, func() { w.recordBeat(node.ErrFenced, now) }, true},
	} {
		now = now.Add(step.after)
		step.do()
		if err := w.reason(now, lease); (err == nil) != step.ok {
			t.Errorf("%s: %v, want ok %v", step.name, err, step.ok)
		}
	}
}
