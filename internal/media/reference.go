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

// Keep stores a reference file of a job before the job's submission. It first inspects data with
// policy (format.Inspect). The text of a *format.FileError is for the user; other errors are
// internal. Keep writes the row before the bytes, so that the file is deleted after a day unless
// the job adopts it. The end of ctx does not interrupt the write of the row, because the database
// could otherwise commit the row after Discard.
func (s *Store) Keep(ctx context.Context, job string, data []byte, policy format.Policy) (File, error) {
	contentType, _, _, err := format.Inspect(data, policy)
	if err != nil {
		return File{}, err
	}
	f := File{Name: newName(), Type: contentType, Size: int64(len(data))}
	if err := ctx.Err(); err != nil {
		return File{}, fmt.Errorf("keep a reference: %w", err)
	}
	err = s.write(ctx, func(tx *store.Tx, nowMS int64) error {
		_, err := tx.Exec(insertText, f.Name, job, stateKept, f.Type, f.Size, nowMS)
		return err
	})
	if err != nil {
		return File{}, fmt.Errorf("keep a reference: %w", err)
	}
	if err := s.backend.put(ctx, f.Name, f.Type, bytes.NewReader(data)); err != nil {
		return File{}, errors.Join(fileError("keep", f.Name, err), s.giveUp(ctx, loseText, f.Name))
	}
	return f, nil
}

// Adopt adds the statement to keep a job's references until Drop. It must be part of the transaction
// that submits the job. A second call is a no-op.
func Adopt(q *store.Batch, job string, nowMS int64) { q.Exec(nil, adoptText, nowMS, job) }

// Discard gives up the references of a job with a rejected submission; Run deletes the files. If
// the job was submitted after all, because the response to a commit was lost, Discard is a no-op.
// If the database is unavailable, the references expire after a day.
func (s *Store) Discard(ctx context.Context, job string) {
	if err := s.giveUp(ctx, discardText, job); err != nil {
		s.log.Warn("media: references of a rejected submission could not be given up; they expire after a day", "job", job, "error", err)
	}
}

// writeTimeout bounds a statement about references.
const writeTimeout = 5 * time.Second

// write runs a transaction to its end even if the client disconnects.
func (s *Store) write(ctx context.Context, do func(tx *store.Tx, nowMS int64) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return s.db.Update(ctx, func(tx *store.Tx) error {
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		return do(tx, nowMS)
	})
}

// giveUp runs a statement that gives up references. Its parameters are the time ($1) and key ($2).
func (s *Store) giveUp(ctx context.Context, text, key string) error {
	var changed int64
	err := s.write(ctx, func(tx *store.Tx, nowMS int64) (err error) {
		changed, err = tx.Exec(text, nowMS, key)
		return err
	})
	if err == nil && changed > 0 {
		select {
		case s.wake <- struct{}{}:
		default: // Run is already about to look
		}
	}
	return err
}

// Open opens a file for this node, for example to send a reference to a provider. It ignores whether
// the file's link works. It returns ErrUnknown if the file does not exist or was given up. The
// caller must close the reader before ctx ends.
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, File, error) {
	rec, err := s.find(ctx, name)
	switch {
	case err != nil:
		return nil, File{}, fileError("open", name, err)
	case rec == nil, rec.state == stateGone, rec.state == statePending:
		return nil, File{}, fileError("open", name, ErrUnknown)
	}
	content, err := s.backend.open(ctx, name, rec.file.Size, span{0, rec.file.Size})
	if err != nil {
		return nil, File{}, fileError("open", name, err)
	}
	return content, rec.file, nil
}
