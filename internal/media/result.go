package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tollgate/internal/media/format"
	"tollgate/internal/store"
)

// maxNames bounds the number of names per call of ReserveTx.
const maxNames = 1000

// ReserveTx creates and records n names for results of job, so that the sweep knows every file
// before the file is stored. The names belong to the job until Publish or Drop, or until a day
// passes without Put or RenewTx.
func ReserveTx(tx *store.Tx, job string, n int) ([]string, error) {
	if n < 1 || n > maxNames {
		return nil, fmt.Errorf("reserve %d names: the number must be from 1 to %d", n, maxNames)
	}
	nowMS, err := tx.NowMS()
	if err != nil {
		return nil, fmt.Errorf("reserve names: %w", err)
	}
	names := make([]string, n)
	for i := range names {
		names[i] = newName()
		if _, err := tx.Exec(insertText, names[i], job, statePending, "", 0, nowMS); err != nil {
			return nil, fmt.Errorf("reserve names: %w", err)
		}
	}
	return names, nil
}

// RenewTx gives the job's unpublished names another day and returns the job's complete files. A
// node that takes over a job calls RenewTx, because the job may have been idle for long. Within the
// day, the node can publish the returned files and must store the others again.
func RenewTx(tx *store.Tx, job string) ([]File, error) {
	files, err := renewTx(tx, job)
	if err != nil {
		return nil, fmt.Errorf("renew names: %w", err)
	}
	return files, nil
}

func renewTx(tx *store.Tx, job string) ([]File, error) {
	nowMS, err := tx.NowMS()
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(renewText, nowMS, job); err != nil {
		return nil, err
	}
	return store.Collect(tx, func(row store.Row) (f File, err error) {
		err = row.Scan(&f.Name, &f.Type, &f.Size)
		return f, err
	}, storedText, job)
}

// Limit bounds a Put.
type Limit struct {
	Kind string // KindImage or KindVideo, the required kind of the bytes
	Size int64  // maximum size in bytes
}

// Put stores the bytes of r under a reserved name, completely or not at all. They are durable when
// Put returns. The bytes determine the type: an image is a PNG, JPEG, WebP or GIF, and a video is an
// MP4, WebM or MOV. Another Put replaces the stored file. Two nodes must not store a file under the
// same name at the same time.
//
// Put returns ErrNotReserved, ErrSource if r failed, ErrTooLarge, ErrWrongKind or ErrBroken for bad
// content, ErrStorage if the backend failed, or an error of the database. Put does not close r.
func (s *Store) Put(ctx context.Context, name string, r io.Reader, limit Limit) (File, error) {
	if limit.Size <= 0 || (limit.Kind != KindImage && limit.Kind != KindVideo) {
		return File{}, fmt.Errorf("store a %q of at most %d bytes: the limit is invalid", limit.Kind, limit.Size)
	}
	if err := s.begin(ctx, name); err != nil {
		return File{}, fileError("store", name, err)
	}
	reader, err := newResultReader(ctx, r, limit)
	if err != nil {
		return File{}, fileError("store", name, err)
	}
	if err := s.backend.put(ctx, name, reader.contentType, reader); err != nil {
		return File{}, fileError("store", name, err)
	}
	f := File{Name: name, Type: reader.contentType, Size: reader.size}
	if err := s.finish(ctx, f); err != nil {
		return File{}, fileError("store", name, err)
	}
	return f, nil
}

// begin checks that a name is reserved and resets its state, so that Publish fails while Put replaces
// the file.
func (s *Store) begin(ctx context.Context, name string) error {
	rec, err := s.find(ctx, name)
	switch {
	case err != nil:
		return err
	case rec != nil && rec.state == statePending:
		return nil
	case rec == nil || rec.state != stateStored:
		return ErrNotReserved
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		changed, err := tx.Exec(resetText, name)
		if err == nil && changed == 0 {
			return ErrNotReserved
		}
		return err
	})
}

// finish records that a result is complete. If the name was given up meanwhile, finish deletes the
// file.
func (s *Store) finish(ctx context.Context, f File) error {
	var state string // the state of the name if it is not reserved
	err := s.db.Update(ctx, func(tx *store.Tx) error {
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		changed, err := tx.Exec(storeText, f.Type, f.Size, nowMS, f.Name)
		if err != nil || changed == 1 {
			return err
		}
		rec, err := recordTx(tx, f.Name)
		if err != nil {
			return err
		}
		if state = stateGone; rec != nil {
			state = rec.state
		}
		return ErrNotReserved
	})
	if errors.Is(err, ErrNotReserved) && state == stateGone {
		return errors.Join(err, s.remove(ctx, f.Name))
	}
	return err
}

// find reads a file's row; it returns nil if there is no row.
func (s *Store) find(ctx context.Context, name string) (*record, error) {
	return store.Read(ctx, s.db, func(tx *store.Tx) (*record, error) { return recordTx(tx, name) })
}

// removeTimeout bounds the deletion of one file.
const removeTimeout = 30 * time.Second

// remove deletes a file even if ctx has ended.
func (s *Store) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	return s.backend.remove(ctx, name)
}

// Publication is the result of Publish. It is valid after the batch has run.
type Publication struct {
	changed []int64 // changed rows for each file
}

// AllPublished reports whether each file was published. It returns false if a file was not complete
// or its name was given up.
func (p *Publication) AllPublished() bool {
	for _, n := range p.changed {
		if n != 1 {
			return false
		}
	}
	return true
}

// Publish adds the statements to make stored results of job public. Their retention begins at nowMS,
// the transaction's time in Unix milliseconds. Public files stay unchanged. In a job's last
// transaction, Publish must come before Drop.
func Publish(q *store.Batch, job string, files []File, nowMS int64) *Publication {
	p := &Publication{changed: make([]int64, len(files))}
	for i, f := range files {
		q.Exec(&p.changed[i], publishText, nowMS, f.Name, job)
	}
	return p
}

// Drop adds the statement to give up a job's references and its unpublished names and results; Run
// deletes the files. Drop must be part of the job's last transaction. A second call is a no-op.
func Drop(q *store.Batch, job string, nowMS int64) { q.Exec(nil, dropText, nowMS, job) }

// SizesTx returns the sizes in bytes of the published results of jobs, by the last element of their
// links.
func SizesTx(tx *store.Tx, jobs []string) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := tx.Each(func(row store.Row) error {
		var f File
		err := row.Scan(&f.Name, &f.Type, &f.Size)
		sizes[f.Name+format.Extension(f.Type)] = f.Size
		return err
	}, `SELECT name, type, size FROM media_file WHERE `+tx.In("job", 1)+` AND state = 'public'`, store.List(jobs))
	if err != nil {
		return nil, fmt.Errorf("read the sizes of files: %w", err)
	}
	return sizes, nil
}

// Retention returns the lifetime of results after their publication.
func (s *Store) Retention() time.Duration { return s.retention }
