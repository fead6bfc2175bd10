package format

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Policy is the policy of Inspect. The zero value is right for references.
type Policy struct {
	// Kinds are the accepted kinds (KindImage, KindVideo). If empty, both are accepted.
	Kinds []string
	// ImageSize and VideoSize are limits in bytes. Zero means 30 MiB and 100 MiB.
	ImageSize, VideoSize int64
	// Pixels is the limit of an image's pixels. Zero means 100 million.
	Pixels int64
	// Side is the limit of an image's side in pixels. Zero means 16,384.
	Side int
}

// The default limits.
const (
	usualImageSize = 30 << 20
	usualVideoSize = 100 << 20
	usualPixels    = 100_000_000
	usualSide      = 16_384
)

// FileError describes a problem with a user's file.
type FileError struct {
	// Text tells the user the problem and the remedy. It begins with a capital and names no field.
	Text string
}

// Error implements error.
func (r *FileError) Error() string { return r.Text }

func refuse(format string, args ...any) error { return &FileError{fmt.Sprintf(format, args...)} }

// welcome lists the accepted formats of kinds, in sentences for users.
func welcome(kinds []string) string {
	switch {
	case !slices.Contains(kinds, KindVideo):
		return "a PNG, JPEG, WebP or GIF image"
	case !slices.Contains(kinds, KindImage):
		return "an MP4, WebM or MOV video"
	}
	return "a PNG, JPEG, WebP or GIF image, or an MP4, WebM or MOV video"
}

// Inspect checks a user's file by its bytes, ignoring its declared type, and returns its content
// type and, for images, its size in pixels. It decodes nothing: the size comes from the headers, so
// a small file that declares a huge picture is rejected early. Inspect also rejects files that end
// early, and files that another program would interpret as something else, such as a page or an
// archive. The error is always a *FileError.
func Inspect(data []byte, b Policy) (contentType string, width, height int, err error) {
	if len(b.Kinds) == 0 {
		b.Kinds = []string{KindImage, KindVideo}
	}
	head := data[:min(len(data), HeadSize)]
	contentType = Sniff(head)
	kind := KindOf(contentType)
	if err := inspectKind(head, contentType, kind, b.Kinds); err != nil {
		return "", 0, 0, err
	}
	if err := inspectSize(int64(len(data)), kind, b); err != nil {
		return "", 0, 0, err
	}
	s := NewShape(contentType)
	err = s.Feed(data)
	if err == nil {
		err = s.Finish()
	}
	if err != nil {
		return "", 0, 0, refuse("The %s is cut off or damaged. Save it anew as %s.", kind, welcome([]string{kind}))
	}
	var tail []byte
	if s.ended {
		tail = data[s.end:]
	}
	if otherwise(head, tail) {
		return "", 0, 0, refuse("The %s is also something else, such as a page or an archive. Save it anew as %s without anything attached.",
			kind, welcome([]string{kind}))
	}
	if kind == KindVideo {
		return contentType, 0, 0, nil
	}
	if err := inspectPixels(s.width, s.height, b); err != nil {
		return "", 0, 0, err
	}
	return contentType, s.width, s.height, nil
}

// inspectKind returns an error unless kinds has the file's kind.
func inspectKind(head []byte, contentType, kind string, kinds []string) error {
	if slices.Contains(kinds, kind) {
		return nil
	}
	what := LooksLike(head)
	switch {
	case len(head) == 0:
		return refuse("The file is empty. Send %s.", welcome(kinds))
	case kind != "":
		return refuse("The file is of the type %s. Send %s.", contentType, welcome(kinds))
	case what != "":
		return refuse("The file looks like %s. Send %s.", what, welcome(kinds))
	}
	return refuse("The file is of no known kind. Send %s.", welcome(kinds))
}

// inspectSize rejects files of too many bytes.
func inspectSize(size int64, kind string, b Policy) error {
	limit := positive(b.ImageSize, usualImageSize)
	if kind == KindVideo {
		limit = positive(b.VideoSize, usualVideoSize)
	}
	if size > limit {
		return refuse("The %s has %d bytes, more than the %d that are taken. Send a smaller one.", kind, size, limit)
	}
	return nil
}

// inspectPixels rejects pictures that would be huge once decoded.
func inspectPixels(width, height int, b Policy) error {
	side, pixels := positive(int64(b.Side), usualSide), positive(b.Pixels, usualPixels)
	if int64(max(width, height)) > side || int64(width)*int64(height) > pixels {
		return refuse("The image has %d x %d pixels. At most %d on a side and %d in all are taken: send a smaller one.", width, height,
			side, pixels)
	}
	return nil
}

// positive returns n, or usual if n is not positive.
func positive(n, usual int64) int64 {
	if n > 0 {
		return n
	}
	return usual
}

// markup lists beginnings of documents, in lower case. A file with one of them near its beginning
// is rejected.
var markup = []string{"<!doctype", "<html", "<head", "<body", "<script", "<iframe", "<svg", "%pdf-"}

// archives are the first bytes of archives. zipEnd occurs in the last bytes of a ZIP archive, where
// programs look for it.
var archives = []string{"PK\x03\x04", "Rar!\x1a\x07", "7z\xbc\xaf\x27\x1c"}

const (
	zipEnd     = "PK\x05\x06"
	zipEndSize = 22 + 1<<16 // including the longest comment
)

// otherwise reports whether a file could also be interpreted as a document or an archive, by its
// first bytes or by bytes after its proper end. Data appended by cameras (further pictures, short
// clips, notes) is neither.
func otherwise(head, tail []byte) bool {
	tailStart := tail[:min(len(tail), HeadSize)]
	for _, part := range [][]byte{head, tailStart} {
		lower := strings.ToLower(string(part))
		if slices.ContainsFunc(markup, func(m string) bool { return strings.Contains(lower, m) }) {
			return true
		}
	}
	if slices.ContainsFunc(archives, func(a string) bool { return bytes.Contains(tailStart, []byte(a)) }) {
		return true
	}
	return bytes.Contains(tail[max(0, len(tail)-zipEndSize):], []byte(zipEnd))
}
