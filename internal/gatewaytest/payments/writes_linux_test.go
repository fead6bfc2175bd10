package payments

import (
	"errors"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// killAtWrites kills the node at its writes to a file. The kernel reports a write when it has happened, so the kill
// can come a few writes later, and writes that follow quickly are reported as one.
func killAtWrites(t *testing.T, k *killer, path string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	reports := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		buffer := make([]byte, 64*unix.SizeofInotifyEvent)
		for {
			n, err := reports.Read(buffer)
			if err != nil {
				if !errors.Is(err, os.ErrClosed) {
					t.Error(err)
				}
				return
			}
			for range n / unix.SizeofInotifyEvent {
				k.at("write", false)
			}
		}
	})
	t.Cleanup(func() {
		_ = reports.Close()
		group.Wait()
	})
}
