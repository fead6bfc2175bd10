package store

// Pending returns the number of pending writes that are or are not canceled.
func (b *Batcher[T]) Pending(canceled bool) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.pending {
		if w.canceled == canceled {
			n++
		}
	}
	return n
}
