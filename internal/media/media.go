// Package media owns result and reference files: where they are kept, their links, who may
// read them and for how long.
//
// Invariants: a file is there whole or not at all; no link leads to a file that
// its job has not published; names cannot be guessed.
package media

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"tollgate/internal/store"
)

// The kinds of files.
const (
	KindImage = "image"
	KindVideo = "video"
)

// Options are what a Store is made from.
type Options struct {
	DB        *store.DB
	Location  string        // file:DIR or s3://BUCKET?endpoint=…&region=…&path_style=true
	Base      string        // address of the media host in links, without a slash at its end
	Retention time.Duration // how long results are kept from their publication
	// Lookup reads a variable of the environment, for the credentials of a
	// bucket (AWS_ACCESS_KEY_ID and its like).
	Lookup func(string) (string, bool)
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// Store keeps files. It is safe for concurrent use.
type Store struct{}

// Open opens the place that o.Location names and checks that it can be written.
func Open(ctx context.Context, o Options) (*Store, error) { return &Store{}, nil }

// File is one file that is kept.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"` // its content type
	Size int64  `json:"size"` // bytes
}

// Limit is what Put takes.
type Limit struct {
	Kind string // KindImage or KindVideo
	Size int64  // bytes at most
}

// Bounds are what Inspect lets pass. The zero value is right for references.
type Bounds struct {
	Kinds     []string // what is welcome; none: images and videos
	ImageSize int64    // bytes at most; 0: 30 MiB
	VideoSize int64    // bytes at most; 0: 100 MiB
	Pixels    int64    // of an image at most; 0: 100 million
	Side      int      // pixels of an image's longer side at most; 0: 16,384
}

// Refusal is an error about a stranger's file; its text is for the user.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// ReserveTx makes n names for results of job.
func ReserveTx(tx *store.Tx, job string, n int) ([]string, error) { return nil, nil }

// RenewTx starts the day of the job's unpublished names anew and returns the
// files among them that are whole.
func RenewTx(tx *store.Tx, job string) ([]File, error) { return nil, nil }

// Put stores the bytes of r under a reserved name.
func (s *Store) Put(ctx context.Context, name string, r io.Reader, limit Limit) (File, error) {
	return File{}, nil
}

// Publication tells, when its batch has run, whether Publish took place.
type Publication struct{}

// Whole tells whether all files were published. Ask it after the batch has run.
func (p *Publication) Whole() bool { return true }

// Publish adds the statements that make files public from the commit on.
func Publish(q *store.Batch, job string, files []File, nowMS int64) *Publication { return nil }

// Link returns the address of a result.
func (s *Store) Link(f File) string { return "" }

// Keep stores a checked reference file of a job that is about to be submitted.
func (s *Store) Keep(ctx context.Context, job string, data []byte, kinds ...string) (File, error) {
	return File{}, nil
}

// Adopt adds the statement that keeps the references of job as long as the job.
func Adopt(q *store.Batch, job string, nowMS int64) {}

// Discard deletes the references of a job whose submission was refused.
func (s *Store) Discard(ctx context.Context, job string) {}

// Drop adds the statement that gives up the references and the unpublished
// names of job.
func Drop(q *store.Batch, job string, nowMS int64) {}

// Open opens a file.
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, File, error) {
	return nil, File{}, nil
}

// Public tells whether a provider can read links.
func (s *Store) Public() bool { return false }

// ReferenceURL returns the address of a reference for providers.
func (s *Store) ReferenceURL(f File) string { return "" }

// Inspect judges a stranger's file by its bytes.
func Inspect(data []byte, b Bounds) (contentType string, w, h int, err error) {
	return "", 0, 0, nil
}

// Handler serves files.
func (s *Store) Handler() http.Handler { return http.NotFoundHandler() }

// Run deletes what is no longer kept, until ctx ends.
func (s *Store) Run(ctx context.Context) {}
