package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tollgate/internal/media/format"
	"tollgate/internal/store"
)

// Keep stores a reference file of a job that is about to be submitted. data is
// inspected with the usual bounds (format.Inspect) as one of kinds, none meaning
// images and videos; a *format.FileError's text is for the user, other errors are
// failures of our own. The row comes before the bytes, so that a file which its
// job never adopts is deleted after a day.
func (s *Store) Keep(ctx context.Context, job string, data []byte, kinds ...string) (File, error) {
	contentType, _, _, err := format.Inspect(data, format.Policy{Kinds: kinds})
	if err != nil {
		return File{}, err
	}
	f := File{Name: newName(), Type: contentType, Size: int64(len(data))}
	err = s.db.Update(ctx, func(tx *store.Tx) error {
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		_, err = tx.Exec(insertText, f.Name, job, stateKept, f.Type, f.Size, nowMS)
		return err
	})
	if err != nil {
		return File{}, fmt.Errorf("keep a reference: %w", err)
	}
	if err := s.place.put(ctx, f.Name, f.Type, bytes.NewReader(data)); err != nil {
		return File{}, errors.Join(fileError("keep", f.Name, err), s.give(ctx, loseText, f.Name))
	}
	return f, nil
}

// Adopt adds the statement that makes the kept references of job its own from
// the transaction's commit on: they stay until Drop. It belongs in the
// transaction that submits the job; nothing happens twice.
func Adopt(q *store.Batch, job string, nowMS int64) { q.Exec(nil, adoptText, nowMS, job) }

// Discard gives up the references of a job whose submission was refused; Run
// deletes them. Of a job that was submitted after all, as a lost answer to a
// commit may hide, it touches nothing. When the database is away they go after
// a day.
func (s *Store) Discard(ctx context.Context, job string) {
	if err := s.give(ctx, discardText, job); err != nil {
		s.log.Warn("media: references of a refused submission stay for a day", "error", err)
	}
}

// giveTime bounds how long giving references up may take.
const giveTime = 5 * time.Second

// give gives up the references that a statement of $1 now and $2 key names,
// also when the client has left.
func (s *Store) give(ctx context.Context, text, key string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveTime)
	defer cancel()
	var given int64
	err := s.db.Update(ctx, func(tx *store.Tx) error {
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		given, err = tx.Exec(text, nowMS, key)
		return err
	})
	if err == nil && given > 0 {
		select {
		case s.wake <- struct{}{}:
		default: // it is about to look anyway
		}
	}
	return err
}

// Open opens a file for this node itself, whether or not its link works: to
// send a reference to a provider. ErrUnknown if there is none, or it was given
// up. The caller closes it; ctx lasts until then.
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, File, error) {
	found, err := s.find(ctx, name)
	switch {
	case err != nil:
		return nil, File{}, fileError("open", name, err)
	case found == nil, found.state == stateGone, found.state == statePending:
		return nil, File{}, fileError("open", name, ErrUnknown)
	}
	content, err := s.place.open(ctx, name, found.file.Size, span{0, found.file.Size})
	if err != nil {
		return nil, File{}, fileError("open", name, err)
	}
	return content, found.file, nil
}
