// Package media owns the storage, links, access and retention of result and reference files. The
// bytes are in a folder or in a bucket. A file's row is written before the file and deleted after
// the file.
//
// Invariants:
//   - A file exists completely or not at all.
//   - A file's type is determined by its bytes and not by the sender.
//   - The link of a result works only from its publication until the end of its retention.
//   - Names cannot be guessed, and the bytes behind a link never change.
//   - No transaction spans a transfer.
package media

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"tollgate/internal/media/format"
	"tollgate/internal/store"
)

// Options configure a Store. DB, Location, Base and Retention are required.
type Options struct {
	// DB holds the rows of the files.
	DB *store.DB
	// Location is the folder or bucket of the files: file:DIR or
	// s3://BUCKET?endpoint=…&region=…&path_style=true (operator.md, Media).
	Location string
	// Base is the address of the media host in links, without a file name:
	// https://media.example.com/media.
	Base string
	// Public is true if providers on the internet can read links below Base.
	Public bool
	// Retention is the lifetime of results after their publication.
	Retention time.Duration
	// Lookup reads an environment variable. Open uses the credentials of a bucket in
	// AWS_ACCESS_KEY_ID and its companions. If Lookup is nil or lacks them, Open uses AWS's chain
	// (see bucketKeys).
	Lookup func(name string) (string, bool)
	// Down is the error of an unavailable bucket at the start, or nil.
	Down error
	// Log gets errors about files. If nil, they are discarded.
	Log *slog.Logger
	// Now is this node's clock. If nil, time.Now is used. Now only decides whether a link still
	// works; the database's clock decides about deletions.
	Now func() time.Time
}

// Store stores files. It is safe for concurrent use.
type Store struct {
	db         *store.DB
	backend    backend
	health     *health
	base       string
	public     bool
	retention  time.Duration
	log        *slog.Logger
	now        func() time.Time
	wake       chan struct{} // makes Run look for files to delete
	clockSteps int64         // number of handled clock jumps, only used by Run; -1 before the first step
}

// Open opens the backend at o.Location and checks that it can write and delete files. If o.Down is
// set, Open skips the check, and the store is down until a check by Run succeeds. The error is for
// the operator.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Retention <= 0 {
		return nil, errors.New("the retention of media must be positive")
	}
	base := strings.TrimRight(o.Base, "/")
	if base == "" {
		return nil, errors.New("media_url is missing: links need the address of the media host")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	b, err := openBackend(ctx, o.Location, o.Lookup)
	if err != nil {
		return nil, err
	}
	h := &health{log: o.Log, now: o.Now}
	if o.Down != nil {
		h.setDown(o.Down)
	} else if err := b.check(ctx); err != nil {
		b.close()
		return nil, err
	}
	return &Store{
		db: o.DB, backend: &monitor{backend: b, health: h}, health: h, base: base, public: o.Public, retention: o.Retention, clockSteps: -1,
		log: o.Log, now: o.Now, wake: make(chan struct{}, 1),
	}, nil
}

// Close closes idle connections to a bucket. It must be called after Run has ended and after the
// last use of the store.
func (s *Store) Close() { s.backend.close() }

// Reread reads the credentials of a bucket again from their source. If this fails, Reread keeps the
// old credentials and logs a warning. It is a no-op for a folder, and for credentials in environment
// variables.
func (s *Store) Reread(ctx context.Context) {
	inner := s.backend
	if m, ok := inner.(*monitor); ok {
		inner = m.backend
	}
	b, ok := inner.(*bucket)
	if !ok || b.keys == nil {
		return
	}
	if err := b.keys.reread(ctx); err != nil {
		s.log.Warn("the credentials of the media bucket cannot be read again; the old ones stay in use", "error", err)
		return
	}
	s.log.Info("the credentials of the media bucket were read again")
}

// openBackend opens the backend at a location.
func openBackend(ctx context.Context, location string, lookup func(string) (string, bool)) (backend, error) {
	if dir, ok := strings.CutPrefix(location, "file:"); ok && dir != "" {
		return openFolder(dir)
	}
	if strings.HasPrefix(location, "s3://") {
		return openBucket(ctx, location, lookup)
	}
	return nil, errors.New("media must be file:DIR or s3://BUCKET?endpoint=…&region=…&path_style=true")
}

// File describes a stored file. Jobs store it in this JSON form.
type File struct {
	// Name is the name of the file in its backend and in its link.
	Name string `json:"name"`
	// Type is the content type.
	Type string `json:"type"`
	// Size is the length in bytes.
	Size int64 `json:"size"`
}

// The kinds of files.
const (
	KindImage = format.KindImage
	KindVideo = format.KindVideo
)

// The errors of files, besides errors of the database and ErrStorage.
var (
	// ErrUnknown means that the file does not exist.
	ErrUnknown = errors.New("there is no such file")
	// ErrNotReserved reports a name without a reservation, because the name was never reserved, was
	// given up or is already published. Nothing was stored.
	ErrNotReserved = errors.New("the name is not reserved for a result")
	// ErrSource means that reading the bytes to store failed. The error wraps the cause.
	ErrSource = errors.New("read the file to store")
	// ErrTooLarge means that the file is larger than the limit.
	ErrTooLarge = errors.New("the file is larger than the limit")
	// ErrWrongKind means that the file is not of the requested kind.
	ErrWrongKind = errors.New("the file is of the wrong kind")
	// ErrBroken means that the bytes end early or contradict themselves.
	ErrBroken = format.ErrBroken
)

// nameBytes is the number of random bytes in a name: 160 bits.
const nameBytes = 20

// newName returns a name of 32 characters, safe in URLs and on case-insensitive file systems.
func newName() string {
	var raw [nameBytes]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	return strings.ToLower(base32.StdEncoding.EncodeToString(raw[:]))
}

// isName reports whether text has the format of newName's results.
func isName(text string) bool {
	if len(text) != base32.StdEncoding.EncodedLen(nameBytes) {
		return false
	}
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// Link returns the address of a result. The link works from the commit of Publish until the end of
// the retention.
func (s *Store) Link(f File) string { return s.base + "/" + f.Name + format.Extension(f.Type) }

// OpenLink opens the file at an address below Base for this node, because users may send the link of
// a result as a reference. isLink is false for any other address. body is nil if no file has the
// address. The caller must close body before ctx ends.
func (s *Store) OpenLink(ctx context.Context, address string) (body io.ReadCloser, size int64, isLink bool, err error) {
	rest, isLink := strings.CutPrefix(address, s.base+"/")
	if !isLink {
		return nil, 0, false, nil
	}
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	name, ext, ok := parsePath(handlerPath + rest)
	if !ok {
		return nil, 0, true, nil
	}
	rec, err := s.find(ctx, name)
	if err != nil {
		return nil, 0, true, fileError("open", name, err)
	}
	if rec == nil || format.Extension(rec.file.Type) != ext {
		return nil, 0, true, nil
	}
	if _, servable := s.cacheControl(rec); !servable {
		return nil, 0, true, nil
	}
	content, err := s.backend.open(ctx, name, rec.file.Size, span{0, rec.file.Size})
	if errors.Is(err, ErrUnknown) {
		return nil, 0, true, nil
	}
	if err != nil {
		return nil, 0, true, fileError("open", name, err)
	}
	return content, rec.file.Size, true, nil
}

// ReferenceURL returns the address of a reference for providers. The link works from the commit of
// Adopt until the reference is deleted. Providers can read the link only if Public returns true.
func (s *Store) ReferenceURL(f File) string { return s.Link(f) }

// Public reports whether providers can read the links, because the media host is a public address or
// a name in the public DNS.
func (s *Store) Public() bool { return s.public }

// loggedNameBytes is the number of a name's bytes in logs. The rest stays secret, because the name is
// enough to read a public file.
const loggedNameBytes = 6

// fileOpError is the error of an operation on a file. Its text never contains the whole name.
type fileOpError struct {
	op, name string
	err      error
}

// fileError wraps err in a *fileOpError.
func fileError(op, name string, err error) error { return &fileOpError{op, name, err} }

// Error implements error.
func (f *fileOpError) Error() string {
	prefix := f.name[:min(loggedNameBytes, len(f.name))] + "…"
	text := f.err.Error()
	if isName(f.name) {
		text = strings.ReplaceAll(text, f.name, prefix)
	}
	return fmt.Sprintf("%s media file %s: %s", f.op, prefix, text)
}

// Unwrap returns the cause.
func (f *fileOpError) Unwrap() error { return f.err }
