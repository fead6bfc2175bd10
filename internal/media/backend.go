package media

import (
	"context"
	"io"
	"time"
)

// backend stores the bytes of files in a folder or a bucket. It does not use the database.
type backend interface {
	// check checks that files can be written and deleted. The error is for the operator.
	check(ctx context.Context) error
	// put writes a file completely or not at all: a concurrent open returns the previous file or
	// ErrUnknown. The file is durable when put returns nil. If r fails, put returns an error that
	// wraps the error of r.
	put(ctx context.Context, name, contentType string, r io.Reader) error
	// open opens a file of the given size. It returns ErrUnknown if the file does not exist.
	// expected is the range that the caller reads first.
	open(ctx context.Context, name string, size int64, expected span) (io.ReadSeekCloser, error)
	// remove deletes a file and the remains of interrupted puts. It returns nil for a missing file.
	remove(ctx context.Context, name string) error
	// tidy deletes remains of puts interrupted before the given time, unless a later remove will
	// delete them.
	tidy(ctx context.Context, before time.Time) error
	// close releases resources held between uses.
	close()
}

// span is a range of bytes from from up to but excluding to.
type span struct{ from, to int64 }

// shard returns the folder of a file. Names are random, so files spread evenly over 1,024 folders.
func shard(name string) string { return name[:2] }
