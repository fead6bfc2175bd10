package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// folder is a backend on a file system. It writes and syncs a file below unfinishedDir and then
// renames the file, so that open finds only complete files, even after a kill or a power failure.
// Several nodes may share one folder.
type folder struct {
	dir string
}

// unfinishedDir is the folder of incomplete files. Names of shards have two characters, so no shard
// has this name.
const unfinishedDir = "unfinished"

func openFolder(dir string) (*folder, error) {
	f := &folder{dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, unfinishedDir), 0o700); err != nil {
		return nil, fmt.Errorf("create the media folder: %w", err)
	}
	return f, nil
}

// path returns the path of a file.
func (f *folder) path(name string) string { return filepath.Join(f.dir, shard(name), name) }

func (f *folder) check(ctx context.Context) error { return checkBackend(ctx, f, "the media folder") }

func (f *folder) put(_ context.Context, name, _ string, r io.Reader) (err error) {
	path := f.path(name)
	if err := f.makeShard(filepath.Dir(path)); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Join(f.dir, unfinishedDir), name+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(temp.Name())))
		}
	}()
	_, err = io.Copy(temp, r)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// makeShard creates the folder of a shard durably.
func (f *folder) makeShard(dir string) error {
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return syncDir(f.dir)
}

// syncDir makes the entries of a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (f *folder) open(_ context.Context, name string, _ int64, _ span) (io.ReadSeekCloser, error) {
	file, err := os.Open(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		if missingErr := f.checkExists(); missingErr != nil {
			return nil, missingErr
		}
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return file, err
}

// checkExists returns an error if the folder is missing, for example because the file system is not
// mounted. A missing file was then not deleted.
func (f *folder) checkExists() error {
	_, err := os.Stat(filepath.Join(f.dir, unfinishedDir))
	return err
}

// remove deletes a file. It leaves unfinished files to tidy, because another node may be writing
// the same file.
func (f *folder) remove(_ context.Context, name string) error {
	err := os.Remove(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return f.checkExists()
	}
	return err
}

// tidyChunk is the number of unfinished files read at a time.
const tidyChunk = 1000

func (f *folder) tidy(ctx context.Context, before time.Time) error {
	dir := filepath.Join(f.dir, unfinishedDir)
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for ctx.Err() == nil {
		entries, err := d.ReadDir(tidyChunk)
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil || !info.Mode().IsRegular() || !info.ModTime().Before(before) {
				continue // renamed meanwhile, or being written
			}
			if err := ignoreMissing(os.Remove(filepath.Join(dir, entry.Name()))); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (f *folder) close() {}

// ignoreMissing returns nil if err reports a missing file, and err otherwise.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
