// Package format owns the inspection of media files. It finds a file's content type and size in
// pixels, and decides whether the file is complete and whether a user may send it.
//
// Invariants:
//   - Pictures are not decoded. Only headers are read, and little is kept in memory.
//   - The result does not depend on how the bytes are split into reads.
//   - Unknown formats are rejected, and no accepted format can contain a script for a browser to
//     run.
package format

import (
	"bytes"
	"errors"
	"strings"
)

// The kinds of files.
const (
	KindImage = "image"
	KindVideo = "video"
)

// ErrBroken reports bytes that end early or contradict themselves.
var ErrBroken = errors.New("the file is cut off or damaged")

// format is an accepted file format.
type format struct {
	contentType, extension, kind string
}

// formats lists the accepted formats.
var formats = []format{
	{"image/png", ".png", KindImage},
	{"image/jpeg", ".jpg", KindImage},
	{"image/webp", ".webp", KindImage},
	{"image/gif", ".gif", KindImage},
	{"video/mp4", ".mp4", KindVideo},
	{"video/webm", ".webm", KindVideo},
	{"video/quicktime", ".mov", KindVideo},
}

// Extension returns the file extension of a content type.
func Extension(contentType string) string {
	for _, f := range formats {
		if f.contentType == contentType {
			return f.extension
		}
	}
	return ""
}

// KindOf returns the kind of a content type, or "" if the type is not accepted.
func KindOf(contentType string) string {
	for _, f := range formats {
		if f.contentType == contentType {
			return f.kind
		}
	}
	return ""
}

// HeadSize is the number of bytes needed to identify a format.
const HeadSize = 1024

// Sniff returns the content type of a file with the given first HeadSize bytes, or "" if the format
// is not accepted. head may be shorter for a shorter file.
func Sniff(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case isRIFF(head, "WEBPVP8 "), isRIFF(head, "WEBPVP8L"), isRIFF(head, "WEBPVP8X"):
		return "image/webp"
	case bytes.HasPrefix(head, []byte("\x1aE\xdf\xa3")) && bytes.Contains(head[:min(len(head), 64)], []byte("\x42\x82\x84webm")):
		return "video/webm" // the header contains the element DocType of 4 bytes
	}
	if len(head) < 12 {
		return ""
	}
	switch box, brand := string(head[4:8]), string(head[8:12]); {
	case box == "ftyp" && brand == "qt  ":
		return "video/quicktime"
	case box == "ftyp" && !isOtherBrand(brand):
		return "video/mp4"
	case box == "moov", box == "mdat", box == "wide", box == "free", box == "skip":
		return "video/quicktime" // older files without ftyp
	}
	return ""
}

// isRIFF reports whether a file is a RIFF container with content that begins with tag.
func isRIFF(head []byte, tag string) bool {
	return bytes.HasPrefix(head, []byte("RIFF")) && len(head) >= 8 && bytes.HasPrefix(head[8:], []byte(tag))
}

// isOtherBrand reports whether a brand of the ISO container stands for pictures or sound.
func isOtherBrand(brand string) bool {
	for _, otherBrand := range []string{"avif", "avis", "heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1", "jp2 ", "jpx ", "crx ",
		"M4A ", "M4B ", "M4P "} {
		if brand == otherBrand {
			return true
		}
	}
	return false
}

// LikelyFormat names the likely format of a rejected file for users, or returns "".
func LikelyFormat(head []byte) string {
	text := strings.ToLower(strings.TrimLeft(strings.TrimPrefix(string(head), "\ufeff"), " \t\r\n"))
	switch {
	case strings.Contains(text, "<svg"):
		return "an SVG drawing"
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"), strings.HasPrefix(text, "<head"),
		strings.HasPrefix(text, "<body"):
		return "an HTML page"
	case strings.HasPrefix(text, "<?xml"), strings.HasPrefix(text, "<"):
		return "an XML or HTML document"
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return "JSON"
	case strings.HasPrefix(text, "%pdf-"):
		return "a PDF document"
	case strings.HasPrefix(text, "data:"):
		return "a data URI inside of another"
	case strings.HasPrefix(text, "pk\x03\x04"):
		return "a ZIP archive"
	case strings.HasPrefix(text, "bm"):
		return "a BMP image"
	case strings.HasPrefix(text, "ii*\x00"), strings.HasPrefix(text, "mm\x00*"):
		return "a TIFF image"
	case strings.HasPrefix(text, "\x1ae\xdf\xa3"):
		return "a Matroska video"
	case isRIFF(head, "AVI "):
		return "an AVI video"
	case len(head) >= 12 && string(head[4:8]) == "ftyp" && isOtherBrand(string(head[8:12])):
		switch brand := string(head[8:12]); {
		case strings.HasPrefix(brand, "avi"):
			return "an AVIF image"
		case strings.HasPrefix(brand, "M4"):
			return "a sound file"
		case strings.HasPrefix(brand, "j"), strings.HasPrefix(brand, "c"):
			return "a JPEG 2000 or raw image"
		}
		return "a HEIC image"
	}
	return ""
}
