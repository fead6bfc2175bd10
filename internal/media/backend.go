package media

import (
	"context"
	"io"
	"time"
)

// backend stores the bytes of files in a folder or a bucket. It does not use the database.
type backend interface {
	// check writes, reads and deletes a file. The error is for the operator.
	check(ctx context.Context) error
	// put writes a file completely or not at all. A concurrent open returns the previous file or
	// ErrUnknown. The file is durable when put returns nil. If r fails, put returns an error wrapping
	// the error of r.
	put(ctx context.Context, name, contentType string, r io.Reader) error
	// open opens a file of the given size, or returns ErrUnknown if the file does not exist. expected is the
	// range that the caller reads first.
	open(ctx context.Context, name string, size int64, expected span) (io.ReadSeekCloser, error)
	// remove deletes a file, with the remains of interrupted puts in a bucket. It returns nil for a
	// missing file.
	remove(ctx context.Context, name string) error
	// tidy deletes the remains of puts interrupted before the given time. It may leave them to
	// remove.
	tidy(ctx context.Context, before time.Time) error
	// close closes idle connections.
	close()
}

// span is the range of bytes [from, to).
type span struct{ from, to int64 }

// shard returns the folder of a file. Random names spread files evenly over 1,024 folders.
func shard(name string) string { return name[:2] }
