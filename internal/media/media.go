// Package media owns result and reference files: where they are kept, their
// links, who may read them and for how long. A file's row is written before the
// file and deleted after it; the bytes lie in a folder or in a bucket.
//
// Invariants: a file is there whole or not at all; what it is, its bytes say,
// never whoever sent it; no link leads to a result that its job has not
// published, nor to one past its retention; names cannot be guessed; bytes
// behind a link never change; no transaction spans a transfer.
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

// Options are what a Store is made from. All but Lookup, Log and Now are
// required.
type Options struct {
	// DB holds the rows of the files.
	DB *store.DB
	// Location is where the bytes are: file:DIR or
	// s3://BUCKET?endpoint=…&region=…&path_style=true (operator.md, Media).
	Location string
	// Base is the address of the media host in links, without a name:
	// https://media.example.com/media.
	Base string
	// Public tells that providers on the internet can read what is below Base.
	Public bool
	// Retention is how long results are kept from their publication on.
	Retention time.Duration
	// Lookup reads a variable of the environment, for the credentials of a
	// bucket (AWS_ACCESS_KEY_ID and its like). If it has none, AWS's library looks for
	// them in the environment of the process, and elsewhere. nil: there are none.
	Lookup func(name string) (string, bool)
	// Down, if not nil, is why a bucket does not answer at the start.
	Down error
	// Log hears of files that are missing or cannot be deleted; nil: nobody.
	Log *slog.Logger
	// Now is this node's clock; nil: time.Now. It decides only whether a link
	// still works: what is deleted, the database's clock decides.
	Now func() time.Time
}

// Store keeps files. It is safe for concurrent use.
type Store struct {
	db        *store.DB
	place     place
	health    *health
	base      string
	public    bool
	retention time.Duration
	log       *slog.Logger
	now       func() time.Time
	wake      chan struct{} // Run looks at once for files to delete
	stepsSeen int64         // jumps of the clock; used by Run alone. -1: whatever was before the start
}

// Open opens the place that o.Location names and checks that files can be
// written to it and deleted. If o.Down is set, it skips the check and the store is down
// until Run finds that it works. The error says what the operator can do.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Retention <= 0 {
		return nil, errors.New("the retention of media must be longer than nothing")
	}
	base := strings.TrimRight(o.Base, "/")
	if base == "" {
		return nil, errors.New("links need the address of the media host (media_url)")
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
	at, err := openPlace(ctx, o.Location, o.Lookup)
	if err != nil {
		return nil, err
	}
	h := &health{log: o.Log, now: o.Now}
	if o.Down != nil {
		h.failed(o.Down)
	} else if err := at.check(ctx); err != nil {
		at.close()
		return nil, err
	}
	return &Store{
		db: o.DB, place: &monitored{place: at, health: h}, health: h, base: base, public: o.Public, retention: o.Retention, stepsSeen: -1,
		log: o.Log, now: o.Now, wake: make(chan struct{}, 1),
	}, nil
}

// Close gives back idle connections to a bucket. Call it when Run has ended and
// nobody uses the store any more.
func (s *Store) Close() { s.place.close() }

// Reread reads the credentials of a bucket again from where they were found. It keeps
// the old ones, and logs a warning, if it finds none. It does nothing for a folder, or if
// the variables of the process hold the credentials: these do not change.
func (s *Store) Reread(ctx context.Context) {
	inner := s.place
	if m, ok := inner.(*monitored); ok {
		inner = m.place
	}
	b, ok := inner.(*bucket)
	if !ok || b.keys == nil {
		return
	}
	if err := b.keys.reread(ctx); err != nil {
		s.log.Warn("the credentials of the media bucket cannot be read again: the old ones stay", "error", err)
		return
	}
	s.log.Info("the credentials of the media bucket were read again")
}

// openPlace opens what a location names.
func openPlace(ctx context.Context, location string, lookup func(string) (string, bool)) (place, error) {
	if dir, ok := strings.CutPrefix(location, "file:"); ok && dir != "" {
		return openFolder(dir)
	}
	if strings.HasPrefix(location, "s3://") {
		return openBucket(ctx, location, lookup)
	}
	return nil, errors.New("media must be file:DIR or s3://BUCKET?endpoint=…&region=…&path_style=true")
}

// File is one file that is kept. Jobs hold it in this JSON form.
type File struct {
	// Name is what the file is kept and linked by.
	Name string `json:"name"`
	// Type is the content type that its bytes have.
	Type string `json:"type"`
	// Size is its length in bytes.
	Size int64 `json:"size"`
}

// The kinds of files.
const (
	KindImage = format.KindImage
	KindVideo = format.KindVideo
)

// The errors of files, beside those of the database and of the place.
var (
	// ErrUnknown: there is no such file.
	ErrUnknown = errors.New("there is no such file")
	// ErrNotReserved: the name was never reserved, or is given up or published
	// already. Nothing was stored.
	ErrNotReserved = errors.New("the name is not reserved for a result")
	// ErrSource: reading the bytes that were to be stored failed. The cause is
	// in the chain.
	ErrSource = errors.New("read the file that is to be stored")
	// ErrTooLarge: there were more bytes than the limit.
	ErrTooLarge = errors.New("the file is larger than the limit")
	// ErrForeign: the bytes are not of the kind that was asked for.
	ErrForeign = errors.New("the file is not of a kind that is kept")
	// ErrBroken: the bytes end early or contradict themselves.
	ErrBroken = format.ErrBroken
)

// nameBytes of randomness make a name: 160 bits.
const nameBytes = 20

// newName returns a name of 32 characters that are safe in addresses and on
// file systems that do not tell upper from lower case.
func newName() string {
	var raw [nameBytes]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	return strings.ToLower(base32.StdEncoding.EncodeToString(raw[:]))
}

// isName tells whether a text could be one of newName's.
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

// Link returns the address of a result. It works from the commit of Publish on,
// until the retention is over.
func (s *Store) Link(f File) string { return s.base + "/" + f.Name + format.Extension(f.Type) }

// OpenLink opens the file behind an address below Base, for this node itself: a
// user may send the link of a result as a reference. ours is false for every
// other address. body is nil if no link leads there. The caller closes body; ctx
// lasts until then.
func (s *Store) OpenLink(ctx context.Context, address string) (body io.ReadCloser, size int64, ours bool, err error) {
	rest, ours := strings.CutPrefix(address, s.base+"/")
	if !ours {
		return nil, 0, false, nil
	}
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	name, ext, ok := parsePath(handlerPath + rest)
	if !ok {
		return nil, 0, true, nil
	}
	found, err := s.find(ctx, name)
	if err != nil {
		return nil, 0, true, fileError("open", name, err)
	}
	if found == nil || format.Extension(found.file.Type) != ext {
		return nil, 0, true, nil
	}
	if _, works := s.caching(found); !works {
		return nil, 0, true, nil
	}
	content, err := s.place.open(ctx, name, found.file.Size, span{0, found.file.Size})
	if errors.Is(err, ErrUnknown) {
		return nil, 0, true, nil
	}
	if err != nil {
		return nil, 0, true, fileError("open", name, err)
	}
	return content, found.file.Size, true, nil
}

// ReferenceURL returns the address of a reference, for providers. It works from
// the commit of Adopt on, until the reference is deleted. It is of use to a
// provider only if Public.
func (s *Store) ReferenceURL(f File) string { return s.Link(f) }

// Public tells whether links are addresses that a provider can read: whether
// their host is a public address or a name of the public DNS.
func (s *Store) Public() bool { return s.public }

// shownName is how much of a name may stand in the log: whoever has a public
// file's name may read it.
const shownName = 6

// fileFault is an error about one file, whose text never shows the whole name.
type fileFault struct {
	doing, name string
	err         error
}

// fileError says which file an error is about, and what was being done to it.
func fileError(doing, name string, err error) error { return &fileFault{doing, name, err} }

// Error implements error.
func (f *fileFault) Error() string {
	shown := f.name[:min(shownName, len(f.name))] + "…"
	text := f.err.Error()
	if isName(f.name) {
		text = strings.ReplaceAll(text, f.name, shown)
	}
	return fmt.Sprintf("%s media file %s: %s", f.doing, shown, text)
}

// Unwrap returns the cause.
func (f *fileFault) Unwrap() error { return f.err }
