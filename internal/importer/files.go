package importer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFiles writes the credential of each line to a file (mode 0600, folder 0700), and
// then the catalog. It never changes a file that exists, because an operator may have
// edited the file. Each file is written atomically, so WriteFiles may be repeated after
// an interruption. A dry run writes nothing.
func (c *Contents) WriteFiles(catalog string, dryRun bool) ([]OutputFile, error) {
	var files []OutputFile
	write := func(path string, content []byte) error {
		exists, err := writeNew(path, content, dryRun)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		files = append(files, OutputFile{Path: path, Kept: exists})
		return nil
	}
	for _, s := range c.Secrets {
		if err := write(s.Path, []byte(s.Value+"\n")); err != nil {
			return nil, err
		}
	}
	if c.Document == nil {
		return files, nil
	}
	err := write(catalog, append([]byte(catalogHead), c.Document.YAML()...))
	return files, err
}

// catalogHead is the comment above an imported catalog.
const catalogHead = `# Written by tollgate import. Check prices and limits, then run tollgate apply.
# The keys of the lines are in separate files.
`

// writeNew writes a file atomically. It returns true if the file exists already.
func writeNew(path string, content []byte, dryRun bool) (exists bool, err error) {
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
