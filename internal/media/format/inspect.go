package format

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Policy limits the files that Inspect accepts. The zero value is for references.
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
	defaultImageSize = 30 << 20
	defaultVideoSize = 100 << 20
	defaultPixels    = 100_000_000
	defaultSide      = 16_384
)

// FileError describes a problem with a user's file.
type FileError struct {
	// Text names the problem and the remedy, in sentences for the user.
	Text string
}

// Error implements error.
func (e *FileError) Error() string { return e.Text }

func fileErrorf(format string, args ...any) error { return &FileError{fmt.Sprintf(format, args...)} }

// acceptedFormats lists the formats of kinds for users.
func acceptedFormats(kinds []string) string {
	switch {
	case !slices.Contains(kinds, KindVideo):
		return "a PNG, JPEG, WebP or GIF image"
	case !slices.Contains(kinds, KindImage):
		return "an MP4, WebM or MOV video"
	}
	return "a PNG, JPEG, WebP or GIF image, or an MP4, WebM or MOV video"
}

// Inspect checks a user's file by its bytes and returns its content type and, for an image, its size
// in pixels. The size comes from the headers, so that a small file with a huge picture is rejected
// without decoding. Inspect also rejects files that end early, and files that other programs would
// read as a page or an archive. The error is always a *FileError.
func Inspect(data []byte, policy Policy) (contentType string, width, height int, err error) {
	if len(policy.Kinds) == 0 {
		policy.Kinds = []string{KindImage, KindVideo}
	}
	head := data[:min(len(data), HeadSize)]
	contentType = Sniff(head)
	kind := KindOf(contentType)
	if err := inspectKind(head, contentType, kind, policy.Kinds); err != nil {
		return "", 0, 0, err
	}
	if err := inspectSize(int64(len(data)), kind, policy); err != nil {
		return "", 0, 0, err
	}
	s := NewShape(contentType)
	err = s.Feed(data)
	if err == nil {
		err = s.Finish()
	}
	if err != nil {
		return "", 0, 0, fileErrorf("The %s is cut off or damaged. Save it again as %s.", kind, acceptedFormats([]string{kind}))
	}
	var tail []byte
	if s.ended {
		tail = data[s.end:]
	}
	if isAmbiguous(head, tail) {
		return "", 0, 0, fileErrorf("The %s is also something else, such as a page or an archive. Save it again as %s without attached data.",
			kind, acceptedFormats([]string{kind}))
	}
	if kind == KindVideo {
		return contentType, 0, 0, nil
	}
	if err := inspectPixels(s.width, s.height, policy); err != nil {
		return "", 0, 0, err
	}
	return contentType, s.width, s.height, nil
}

// inspectKind rejects files of other kinds.
func inspectKind(head []byte, contentType, kind string, kinds []string) error {
	if slices.Contains(kinds, kind) {
		return nil
	}
	likely := LikelyFormat(head)
	switch {
	case len(head) == 0:
		return fileErrorf("The file is empty. Send %s.", acceptedFormats(kinds))
	case kind != "":
		return fileErrorf("The file is of the type %s. Send %s.", contentType, acceptedFormats(kinds))
	case likely != "":
		return fileErrorf("The file looks like %s. Send %s.", likely, acceptedFormats(kinds))
	}
	return fileErrorf("The file's format is unknown. Send %s.", acceptedFormats(kinds))
}

// inspectSize rejects files with too many bytes.
func inspectSize(size int64, kind string, policy Policy) error {
	limit := orDefault(policy.ImageSize, defaultImageSize)
	if kind == KindVideo {
		limit = orDefault(policy.VideoSize, defaultVideoSize)
	}
	if size > limit {
		return fileErrorf("The %s has %d bytes, more than the allowed %d. Send a smaller file.", kind, size, limit)
	}
	return nil
}

// inspectPixels rejects pictures that would be huge once decoded.
func inspectPixels(width, height int, policy Policy) error {
	side, pixels := orDefault(int64(policy.Side), defaultSide), orDefault(policy.Pixels, defaultPixels)
	if int64(max(width, height)) > side || int64(width)*int64(height) > pixels {
		return fileErrorf("The image has %d x %d pixels. At most %d on a side and %d in all are allowed. Send a smaller image.", width, height,
			side, pixels)
	}
	return nil
}

// orDefault returns n, or fallback if n is not positive.
func orDefault(n, fallback int64) int64 {
	if n > 0 {
		return n
	}
	return fallback
}

// markup lists the first words of documents, in lower case. A file with such a word near its
// beginning is rejected.
var markup = []string{"<!doctype", "<html", "<head", "<body", "<script", "<iframe", "<svg", "%pdf-"}

// archives lists the first bytes of archives. Programs look for zipEnd in the last zipEndSize bytes
// of a file.
var archives = []string{"PK\x03\x04", "Rar!\x1a\x07", "7z\xbc\xaf\x27\x1c"}

const (
	zipEnd     = "PK\x05\x06"
	zipEndSize = 22 + 1<<16 // including the longest comment
)

// isAmbiguous reports whether a program could read a file as a document or an archive, because of
// its first bytes or of bytes after its proper end. It allows data appended by cameras, such as
// further pictures, short clips and notes.
func isAmbiguous(head, tail []byte) bool {
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
