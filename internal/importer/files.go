package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFiles writes the credentials of a plan's lines, each to a file of mode 0600 in
// a folder of mode 0700, and then the catalog. A file that is there is left as it is,
// since somebody may have changed it, and each is there whole or not at all: so where
// it is interrupted, a repetition writes the rest. A dry run writes nothing.
func (p *Contents) WriteFiles(catalog string, dryRun bool) ([]Written, error) {
	var files []Written
	write := func(path string, content []byte) error {
		kept, err := writeNew(path, content, dryRun)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		files = append(files, Written{Path: path, Kept: kept})
		return nil
	}
	for _, s := range p.Secrets {
		if err := write(s.Path, []byte(s.Value+"\n")); err != nil {
			return nil, err
		}
	}
	if p.Document == nil {
		return files, nil
	}
	return files, write(catalog, append([]byte(catalogHead), p.Document.YAML()...))
}

// catalogHead stands above a catalog that was imported.
const catalogHead = `# Made by tollgate import. Look at prices and limits, then make it current with
# tollgate apply. The keys of lines stand in files of their own.
`

// writeNew writes a file whole where there is none; kept: there is one.
func writeNew(path string, content []byte, dryRun bool) (kept bool, err error) {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	case dryRun:
		return false, nil
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return false, err
	}
	file, err := os.CreateTemp(folder, ".import-*") // mode 0600
	if err != nil {
		return false, err
	}
	if _, err = file.Write(content); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return false, err
}
