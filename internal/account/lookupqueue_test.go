package account

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeReader replaces reads of the database. It records the digests of each read, which blocks until
// the test releases it.
type fakeReader struct {
	release chan struct{}

	mu      sync.Mutex
	batches [][]digest
	running int
	usable  map[digest]bool
	err     error
}

func newFakeReader() *fakeReader {
	return &fakeReader{release: make(chan struct{}), usable: make(map[digest]bool)}
}

func (reader *fakeReader) read(ctx context.Context, digests []digest) (map[digest]keyResult, error) {
	reader.mu.Lock()
	reader.batches = append(reader.batches, digests)
	if reader.running++; reader.running > 1 {
		reader.err = errors.New("two reads at once")
	}
	reader.mu.Unlock()
	var timeout error
	select {
	case <-reader.release:
	case <-ctx.Done():
		timeout = ctx.Err()
	}
	reader.mu.Lock()
	defer reader.mu.Unlock()
	reader.running--
	if err := errors.Join(timeout, reader.err); err != nil {
		return nil, err
	}
	result := make(map[digest]keyResult)
	for _, d := range digests {
		if reader.usable[d] {
			result[d] = keyResult{usable: true, principal: Principal{Key: d.String()}}
		}
	}
	return result, nil
}

func testDigest(n int) (d digest) {
	binary.BigEndian.PutUint64(d[:], uint64(n)+1)
	return d
}

var (
	stranger = netip.MustParseAddr("198.51.100.1")
	customer = netip.MustParseAddr("192.0.2.1")
)

func TestLookupBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := newFakeReader()
		lookups := newLookupQueue(time.Now, reader.read)
		defer lookups.close()
		reader.usable[testDigest(7)] = true
		var all sync.WaitGroup
		lookUp := func(n int) {
			all.Go(func() {
				result, err := lookups.lookUp(t.Context(), testDigest(n), customer, true)
				if err != nil || result.usable != (n == 7) {
					t.Errorf("lookUp(%d) = %+v, %v, want usable %v", n, result, err, n == 7)
				}
			})
		}
		lookUp(0)
		synctest.Wait() // the first read is under way
		for range 10 {
			lookUp(7) // one lookup for all callers with the same digest
		}
		for n := range 100 {
			lookUp(n) // including 0, which must not join the earlier read
		}
		synctest.Wait()
		close(reader.release)
		all.Wait()
		var sizes []int
		readsOf0 := 0
		for _, batch := range reader.batches {
			sizes = append(sizes, len(batch))
			for _, d := range batch {
				if d == testDigest(0) {
					readsOf0++
				}
			}
		}
		if len(sizes) != 3 || sizes[0] != 1 || sizes[1] != fastBatchLimit || sizes[2] != 100-fastBatchLimit || readsOf0 != 2 {
			t.Errorf("got reads of %v digests and %d reads of digest 0, want 3 reads and 2", sizes, readsOf0)
		}
	})
}

// TestLookupFlood checks that a flood of unknown keys from one address delays usable keys from other
// addresses, and cached keys from the same address, by at most one read.
func TestLookupFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := newFakeReader()
		lookups := newLookupQueue(time.Now, reader.read)
		defer lookups.close()
		for range 2 * missBurst {
			lookups.misses.add(stranger)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		rejected := make(chan error, 2*slowQueueLimit)
		for n := range 2 * slowQueueLimit {
			flood.Go(func() {
				if _, err := lookups.lookUp(ctx, testDigest(n), stranger, false); errors.Is(err, errQueueFull) {
					rejected <- err
				}
			})
		}
		synctest.Wait()
		if n := len(rejected); n == 0 || n > slowQueueLimit {
			t.Errorf("%d of %d lookups were rejected, want at most %d because the others fit the queue", n, 2*slowQueueLimit, slowQueueLimit)
		}
		const first = 1 << 20
		reader.mu.Lock()
		reader.usable[testDigest(first)], reader.usable[testDigest(first+1)] = true, true
		reader.mu.Unlock()
		answers := make(chan bool, 2)
		go func() {
			result, err := lookups.lookUp(t.Context(), testDigest(first), customer, false)
			answers <- result.usable && err == nil
		}()
		go func() { // a cached key from the stranger's address
			result, err := lookups.lookUp(t.Context(), testDigest(first+1), stranger, true)
			answers <- result.usable && err == nil
		}()
		synctest.Wait()
		for range 2 { // the read under way, then the read of the usable keys
			reader.release <- struct{}{}
			synctest.Wait()
		}
		if len(answers) != 2 || !<-answers || !<-answers {
			t.Error("the next read did not answer the usable keys")
		}
		for _, batch := range reader.batches {
			if len(batch) > slowBatchLimit+2 {
				t.Errorf("a read had %d digests, want at most %d", len(batch), slowBatchLimit+2)
			}
		}
		cancel()
		close(reader.release)
		flood.Wait()
	})
}

func TestLookupTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := newFakeReader()
		lookups := newLookupQueue(time.Now, reader.read)
		defer lookups.close()
		start := time.Now()
		_, err := lookups.lookUp(t.Context(), testDigest(1), customer, false)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != lookupTimeout {
			t.Errorf("lookUp without an answer returned %v after %v, want a timeout after %v", err, time.Since(start), lookupTimeout)
		}
		// A canceled caller stops waiting, and the others still get their answers.
		ctx, cancel := context.WithCancel(t.Context())
		canceled := make(chan error, 1)
		go func() { _, err := lookups.lookUp(ctx, testDigest(2), customer, false); canceled <- err }()
		synctest.Wait()
		cancel()
		if err := <-canceled; !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled caller got %v, want context.Canceled", err)
		}
		close(reader.release)
		if _, err := lookups.lookUp(t.Context(), testDigest(2), customer, false); err != nil {
			t.Error(err)
		}
		lookups.close()
		if _, err := lookups.lookUp(t.Context(), testDigest(3), customer, false); !errors.Is(err, errClosed) {
			t.Errorf("lookUp after close returned %v, want errClosed", err)
		}
	})
}

func TestMissCounter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := newMissCounter(func() time.Time { return now })
	for range missBurst {
		if !s.below(stranger) {
			t.Fatal("the address is not below its burst after fewer unknown keys")
		}
		s.add(stranger)
	}
	if s.below(stranger) || s.below(netip.MustParseAddr("::ffff:198.51.100.1")) || !s.below(customer) {
		t.Error("after the burst, only this address must be above it")
	}
	now = now.Add(time.Second)
	if !s.below(stranger) {
		t.Error("the counter did not forget an unknown key after a second")
	}
	for range 1000 {
		s.add(stranger)
	}
	now = now.Add(time.Duration(missBurst+1) * time.Second)
	if !s.below(stranger) {
		t.Error("the address is not below its burst 21 s after a long flood")
	}
	for n := range 2 * maxAddresses {
		var raw [16]byte
		binary.BigEndian.PutUint64(raw[:], uint64(n)+1)
		s.add(netip.AddrFrom16(raw))
	}
	if n := s.buckets.Len(); n > maxAddresses {
		t.Errorf("the counter has %d addresses, want at most %d", n, maxAddresses)
	}
}
