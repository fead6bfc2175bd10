package media

import (
	"context"
	"io"
	"time"
)

// backend stores the bytes of files: a folder or a bucket. It does not know the rows.
type backend interface {
	// check proves that files can be written and deleted. The error is for the operator.
	check(ctx context.Context) error
	// put writes a file, whole or not at all: whoever opens it meanwhile sees
	// the former one or none. It is durable when put returns nil. An error of r
	// is in the chain of put's.
	put(ctx context.Context, name, contentType string, r io.Reader) error
	// open opens a file of the given size. It returns ErrUnknown if there is no such file. expected
	// is the range read first.
	open(ctx context.Context, name string, size int64, expected span) (io.ReadSeekCloser, error)
	// remove deletes a file and the remainders of its interrupted puts. It returns nil for a
	// missing file.
	remove(ctx context.Context, name string) error
	// tidy deletes remainders of puts interrupted before the given time, if no later remove will
	// delete them.
	tidy(ctx context.Context, before time.Time) error
	// close releases resources held between uses.
	close()
}

// span is a part of a file: from its first byte to before its last.
type span struct{ from, to int64 }

// shard returns the first part of a file's path: names are random, so files
// spread evenly over 1,024 folders.
func shard(name string) string { return name[:2] }
