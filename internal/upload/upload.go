// Package upload owns multipart requests with one large file: it reads text fields into
// memory and the file into a temporary file.
//
// Invariants: the memory of a form is bounded by its text fields; a temporary file has no name, so
// the end of the process removes it.
package upload

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// Bounds of a form.
const (
	maxParts = 256
	maxName  = 128     // bytes of a field's name
	maxText  = 1 << 20 // bytes of a text field
	maxTexts = 4 << 20 // bytes of all text fields
	maxHead  = 64 << 10
)

// TextField is a text field.
type TextField struct{ Name, Value string }

// StoredFile is the file of a form, stored in a temporary file. It is safe for concurrent use by readers.
type StoredFile struct {
	// Name is the base name of the file at the client, and Type the content type of its part.
	Name, Type string
	Size       int64 // bytes

	stored *os.File
}

// ReadAt implements io.ReaderAt.
func (f *StoredFile) ReadAt(p []byte, at int64) (int, error) { return f.stored.ReadAt(p, at) }

// Open returns a reader of the whole file. It need not be closed.
func (f *StoredFile) Open() io.Reader { return io.NewSectionReader(f.stored, 0, f.Size) }

// MultipartForm is a multipart form with a file.
type MultipartForm struct {
	Fields []TextField // in the order of the body
	File   *StoredFile
}

// Value returns the value of a field, or "" if it is absent.
func (f *MultipartForm) Value(name string) string {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return f.Fields[i].Value
		}
	}
	return ""
}

// Close removes the temporary file.
func (f *MultipartForm) Close() {
	if f.File != nil {
		_ = f.File.stored.Close() // nothing is written any more
	}
}

// Options are the rules for a form.
type Options struct {
	// FileField is the name of the only field with a file. It is required.
	FileField string
	// MaxFile returns the maximum size of the file in bytes. Read calls it before it reads the file, with
	// the fields before the file, and again with the complete form. An error rejects the form.
	MaxFile func(*MultipartForm) (int64, error)
	// Folder is the folder of the temporary file; empty means the system's.
	Folder string
}

// Read reads a multipart body of a content type. The caller must close the form. Read stops at the
// first error:
//   - invalid_request for a malformed or incomplete body, too many parts or too much text, a missing
//     file, or a repeated field, except lists with names ending in []
//   - invalid_encoding for text other than UTF-8
//   - request_too_large for a file above MaxFile
//   - service_unavailable if the file cannot be stored
//   - the errors of body and of MaxFile, unchanged
func Read(contentType string, body io.Reader, o Options) (*MultipartForm, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" || len(params["boundary"]) > 70 {
		return nil, fault.New(fault.InvalidRequest,
			"Send a multipart form with the file in the field `%s`, and let your client set the Content-Type.", o.FileField)
	}
	meter := &meteredReader{from: body}
	r := reader{Options: o, form: &MultipartForm{}, meter: meter, parts: multipart.NewReader(meter, params["boundary"])}
	if err := r.read(); err != nil {
		r.form.Close()
		return nil, err
	}
	return r.form, nil
}

// errHead reports a part with a head of more than maxHead bytes.
var errHead = errors.New("the head of a part is too long")

// meteredReader reads at most left bytes, and keeps the error of the body.
type meteredReader struct {
	from io.Reader
	left int64
	err  error
}

// Read implements io.Reader.
func (m *meteredReader) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errHead
	}
	n, err := m.from.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// reader reads one form.
type reader struct {
	Options
	form  *MultipartForm
	meter *meteredReader
	parts *multipart.Reader
	texts int64 // bytes of all text fields
}

func (r *reader) read() error {
	for n := 0; ; n++ {
		r.meter.left = maxHead
		part, err := r.parts.NextRawPart()
		r.meter.left = math.MaxInt64
		switch {
		case err == io.EOF: // a wrapped EOF means an incomplete body
			return r.finish()
		case err != nil:
			return r.broken()
		case n == maxParts:
			return fault.New(fault.InvalidRequest, "The form has more than %d parts.", maxParts)
		}
		if err := r.readPart(part); err != nil {
			return err
		}
	}
}

// broken returns the error of the body, or else the error for a malformed body.
func (r *reader) broken() error {
	if r.meter.err != nil {
		return r.meter.err
	}
	return fault.New(fault.InvalidRequest, "The multipart body is malformed or broke off before its end. Please send the request again.")
}

// finish checks the complete form.
func (r *reader) finish() error {
	if r.form.File == nil {
		return fault.At(fault.InvalidRequest, r.FileField, "Send the file in the field `{param}`, with a file name.")
	}
	most, err := r.MaxFile(r.form)
	if err == nil && r.form.File.Size > most {
		err = r.tooLarge(most)
	}
	return err
}

// tooLarge returns the error for a file above a limit.
func (r *reader) tooLarge(most int64) error {
	return fault.At(fault.RequestTooLarge, r.FileField,
		"The file is larger than the %s that this model takes. Send a shorter or more compressed file.", fault.Bytes(most))
}

func (r *reader) readPart(part *multipart.Part) error {
	name := part.FormName()
	if name == "" || len(name) > maxName || !utf8.ValidString(name) {
		return fault.New(fault.InvalidRequest, "A part of the form has no name, or one that is longer than %d bytes.", maxName)
	}
	isFile := part.FileName() != ""
	switch {
	case isFile && name != r.FileField:
		return fault.At(fault.InvalidRequest, name, "The field `{param}` must be text, not a file.")
	case isFile && r.form.File != nil, !isFile && !strings.HasSuffix(name, "[]") && r.has(name):
		return fault.At(fault.InvalidRequest, name, "The field `{param}` stands more than once. Send it once.")
	case isFile:
		return r.readFile(part)
	case name == r.FileField:
		return fault.At(fault.InvalidRequest, name, "The field `{param}` must be a file with a file name.")
	}
	value, err := io.ReadAll(io.LimitReader(part, maxText+1))
	r.texts += int64(len(value))
	switch {
	case err != nil:
		return r.broken()
	case len(value) > maxText || r.texts > maxTexts:
		return fault.At(fault.InvalidRequest, name, "The field `{param}` is longer than %s, or all text fields than %s.",
			fault.Bytes(maxText), fault.Bytes(maxTexts))
	case !utf8.Valid(value):
		return fault.At(fault.InvalidEncoding, name, "The field `{param}` is not valid UTF-8.")
	}
	r.form.Fields = append(r.form.Fields, TextField{name, string(value)})
	return nil
}

// has reports whether the form has a text field with a name.
func (r *reader) has(name string) bool {
	for i := range r.form.Fields {
		if r.form.Fields[i].Name == name {
			return true
		}
	}
	return false
}

// readFile stores the file.
func (r *reader) readFile(part *multipart.Part) error {
	most, err := r.MaxFile(r.form)
	if err != nil {
		return err
	}
	stored, err := os.CreateTemp(r.Folder, "tollgate-upload-")
	if err != nil {
		return storeError(err)
	}
	name := path.Base(strings.ReplaceAll(part.FileName(), `\`, "/"))
	r.form.File = &StoredFile{Name: name, Type: part.Header.Get("Content-Type"), stored: stored}
	if err := os.Remove(stored.Name()); err != nil {
		return storeError(err)
	}
	var size int64
	var writeErr error
	size, err = io.Copy(fileWriter{stored, &writeErr}, io.LimitReader(part, most+1))
	r.form.File.Size = size
	switch {
	case writeErr != nil:
		return storeError(writeErr)
	case err != nil:
		return r.broken()
	case size > most:
		return r.tooLarge(most)
	case size == 0:
		return fault.At(fault.InvalidRequest, r.FileField, "The file in the field `{param}` is empty.")
	}
	return nil
}

// storeError returns the error of a failure to store the file.
func storeError(err error) error {
	return fault.Unavailable(fmt.Errorf("store an uploaded file: %w", err))
}

// fileWriter writes to a file and keeps the file's error, to distinguish it from an error of the body.
type fileWriter struct {
	file *os.File
	err  *error
}

// Write implements io.Writer.
func (w fileWriter) Write(p []byte) (int, error) {
	n, err := w.file.Write(p)
	*w.err = err
	return n, err
}
