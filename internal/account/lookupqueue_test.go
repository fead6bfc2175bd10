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

// fakeReader replaces reads of the database. A read blocks until the test releases it; its digests
// are recorded.
type fakeReader struct {
	release chan struct{}

	mu      sync.Mutex
	batches [][]digest
	running int
	good    map[digest]bool
	err     error
}

func newFakeReader() *fakeReader {
	return &fakeReader{release: make(chan struct{}), good: make(map[digest]bool)}
}

func (g *fakeReader) read(ctx context.Context, digests []digest) (map[digest]keyResult, error) {
	g.mu.Lock()
	g.batches = append(g.batches, digests)
	if g.running++; g.running > 1 {
		g.err = errors.New("two reads at once")
	}
	g.mu.Unlock()
	var timeout error
	select {
	case <-g.release:
	case <-ctx.Done():
		timeout = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if err := errors.Join(timeout, g.err); err != nil {
		return nil, err
	}
	result := make(map[digest]keyResult)
	for _, d := range digests {
		if g.good[d] {
			result[d] = keyResult{good: true, principal: Principal{Key: d.String()}}
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
		g := newFakeReader()
		c := newLookupQueue(time.Now, g.read)
		defer c.close()
		g.good[testDigest(7)] = true
		var all sync.WaitGroup
		lookUp := func(n int) {
			all.Go(func() {
				result, err := c.lookUp(t.Context(), testDigest(n), customer, true)
				if err != nil || result.good != (n == 7) {
					t.Errorf("lookup %d: %+v, %v", n, result, err)
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
		close(g.release)
		all.Wait()
		var sizes []int
		reads0 := 0
		for _, batch := range g.batches {
			sizes = append(sizes, len(batch))
			for _, d := range batch {
				if d == testDigest(0) {
					reads0++
				}
			}
		}
		if len(sizes) != 3 || sizes[0] != 1 || sizes[1] != batchLimit || sizes[2] != 100-batchLimit || reads0 != 2 {
			t.Errorf("reads of %v digests, digest 0 read %d times", sizes, reads0)
		}
	})
}

// TestLookupFlood checks that a flood of made-up keys from one address delays good keys from other
// addresses by at most one read, and never refuses a cached good key from the same address.
func TestLookupFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newFakeReader()
		c := newLookupQueue(time.Now, g.read)
		defer c.close()
		for range 2 * missBurst {
			c.misses.add(stranger)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		refused := make(chan error, 2*queueSlow)
		for n := range 2 * queueSlow {
			flood.Go(func() {
				if _, err := c.lookUp(ctx, testDigest(n), stranger, false); errors.Is(err, errQueueFull) {
					refused <- err
				}
			})
		}
		synctest.Wait()
		if n := len(refused); n == 0 || n > queueSlow {
			t.Errorf("%d of %d lookups were refused, the slow queue holds %d", n, 2*queueSlow, queueSlow)
		}
		const good = 1 << 20
		g.mu.Lock()
		g.good[testDigest(good)], g.good[testDigest(good+1)] = true, true
		g.mu.Unlock()
		answered := make(chan bool, 2)
		go func() {
			result, err := c.lookUp(t.Context(), testDigest(good), customer, false)
			answered <- result.good && err == nil
		}()
		go func() { // a cached key from the stranger's address
			result, err := c.lookUp(t.Context(), testDigest(good+1), stranger, true)
			answered <- result.good && err == nil
		}()
		synctest.Wait()
		for range 2 { // the read under way, then the read of the good keys
			g.release <- struct{}{}
			synctest.Wait()
		}
		if len(answered) != 2 || !<-answered || !<-answered {
			t.Error("good keys were not answered by the next read")
		}
		for _, batch := range g.batches {
			if len(batch) > batchSlow+2 {
				t.Errorf("a read of %d digests in a flood", len(batch))
			}
		}
		cancel()
		close(g.release)
		flood.Wait()
	})
}

func TestLookupTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newFakeReader()
		c := newLookupQueue(time.Now, g.read)
		defer c.close()
		start := time.Now()
		_, err := c.lookUp(t.Context(), testDigest(1), customer, false)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != lookupTimeout {
			t.Errorf("a frozen database answered %v after %v", err, time.Since(start))
		}
		// A canceled caller stops waiting, and the others still get their answers.
		ctx, cancel := context.WithCancel(t.Context())
		canceled := make(chan error, 1)
		go func() { _, err := c.lookUp(ctx, testDigest(2), customer, false); canceled <- err }()
		synctest.Wait()
		cancel()
		if err := <-canceled; !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled caller got %v", err)
		}
		close(g.release)
		if _, err := c.lookUp(t.Context(), testDigest(2), customer, false); err != nil {
			t.Error(err)
		}
		c.close()
		if _, err := c.lookUp(t.Context(), testDigest(3), customer, false); !errors.Is(err, errClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}

func TestMissCounter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := newMissCounter(func() time.Time { return now })
	for range missBurst {
		if !s.below(stranger) {
			t.Fatal("a miss of the burst was rejected")
		}
		s.add(stranger)
	}
	if s.below(stranger) || s.below(netip.MustParseAddr("::ffff:198.51.100.1")) || !s.below(customer) {
		t.Error("after the burst, exactly this address must wait")
	}
	now = now.Add(time.Second)
	if !s.below(stranger) {
		t.Error("the counter does not forget one miss a second")
	}
	for range 1000 {
		s.add(stranger)
	}
	now = now.Add(time.Duration(missBurst+1) * time.Second)
	if !s.below(stranger) {
		t.Error("the counter does not forget a long flood in the maximum time")
	}
	for n := range 2 * maxAddresses {
		var raw [16]byte
		binary.BigEndian.PutUint64(raw[:], uint64(n)+1)
		s.add(netip.AddrFrom16(raw))
	}
	if n := s.buckets.Len(); n > maxAddresses {
		t.Errorf("%d addresses are remembered", n)
	}
}
