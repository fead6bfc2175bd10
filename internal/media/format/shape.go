package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Shape parses the outer structure of a file to find the picture's size and whether the file is
// complete. It is a state machine that skips bytes, searches for a byte, or collects a header for
// the format's next step.
type Shape struct {
	skip   int64 // number of bytes to skip first
	skipTo int   // then skip to this byte, unless it is -1
	need   int   // then collect this many bytes in header
	header []byte
	next   step // and pass header to this step
	// mayEnd is true if the file may end here.
	mayEnd bool
	// unbounded is true if all further bytes belong to the current part.
	unbounded bool
	// ended is true if the structure has ended. end is its length. Steps set skip to the number of
	// bytes left, or to a negative number if the last bytes do not belong to the file.
	ended bool
	end   int64

	offset        int64 // number of bytes so far
	width, height int   // pixels of the largest picture; 0 if unknown
	sawMovie      bool  // whether the video's table of contents was found
	sawData       bool  // whether the video's frames were found
}

// step reads a collected header and sets the next state. It must not retain header.
type step func(s *Shape, header []byte) error

// NewShape returns the state machine for a content type known to Sniff.
func NewShape(contentType string) *Shape {
	s := &Shape{skipTo: -1}
	switch contentType {
	case "image/png":
		s.skip, s.need, s.next = 8, 8, pngFirst
	case "image/jpeg":
		s.skip, s.need, s.next = 2, 2, jpegMarker
	case "image/gif":
		s.need, s.next = 13, gifScreen
	case "image/webp":
		s.need, s.next = 30, webpHeader
	case "video/webm":
		s.need, s.next = 5, ebmlHeader
	default:
		s.need, s.next, s.mayEnd = 8, boxHeader, true
	}
	return s
}

// brokenError returns an error that wraps ErrBroken.
func brokenError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

// Feed takes the next bytes of the file. An error wraps ErrBroken; after an error Feed must not be
// called again.
func (s *Shape) Feed(p []byte) error {
	start := s.offset
	s.offset += int64(len(p))
	rest := p
	for len(rest) > 0 && !s.ended && !s.unbounded {
		switch {
		case s.skip > 0:
			n := min(s.skip, int64(len(rest)))
			s.skip -= n
			rest = rest[n:]
			continue
		case s.skipTo >= 0:
			i := bytes.IndexByte(rest, byte(s.skipTo))
			if i < 0 {
				return nil
			}
			rest, s.skipTo = rest[i:], -1
			continue
		case s.need > len(s.header):
			n := min(s.need-len(s.header), len(rest))
			s.header = append(s.header, rest[:n]...)
			rest = rest[n:]
			if s.need > len(s.header) {
				return nil
			}
		}
		header := s.header
		s.header = s.header[:0]
		if err := s.next(s, header); err != nil {
			return err
		}
		if s.ended {
			s.end = start + int64(len(p)-len(rest)) + s.skip
		}
	}
	return nil
}

// Finish must be called at the end of the file. It returns an error that wraps ErrBroken if the
// file is incomplete.
func (s *Shape) Finish() error {
	switch {
	case s.ended && s.end > s.offset:
		return brokenError("the last %d bytes are missing", s.end-s.offset)
	case s.ended, s.unbounded:
	case !s.mayEnd, s.skip > 0:
		return brokenError("the file ends after %d bytes, inside a part", s.offset)
	case !s.sawMovie:
		return brokenError("a video without a table of contents")
	case len(s.header) > 0 && !s.sawData:
		return brokenError("the file ends after %d bytes, inside the header of a box", s.offset)
	}
	return nil
}

// recordSize records the size of a picture. The largest picture counts.
func (s *Shape) recordSize(width, height int) {
	s.width, s.height = max(s.width, width), max(s.height, height)
}

// A PNG has chunks of length, type, data and checksum. The first is IHDR, the last is IEND.

func pngFirst(s *Shape, header []byte) error {
	if string(header[4:]) != "IHDR" || binary.BigEndian.Uint32(header) != 13 {
		return brokenError("a PNG without a header")
	}
	s.need, s.next = 8, func(s *Shape, size []byte) error {
		width, height := binary.BigEndian.Uint32(size), binary.BigEndian.Uint32(size[4:])
		if width == 0 || height == 0 || width > 1<<31-1 || height > 1<<31-1 {
			return brokenError("a PNG of no size")
		}
		s.recordSize(int(width), int(height))
		s.skip, s.need, s.next = 5+4, 8, pngChunk
		return nil
	}
	return nil
}

func pngChunk(s *Shape, header []byte) error {
	length := binary.BigEndian.Uint32(header)
	if length > 1<<31-1 {
		return brokenError("a chunk of a PNG that is too long")
	}
	s.skip = int64(length) + 4
	s.ended = string(header[4:]) == "IEND"
	return nil
}

// A JPEG has segments. They begin with FF and a marker, and most have a length. In the entropy-coded
// data, FF is followed by 00 or a restart marker. The last marker is EOI.

func jpegMarker(s *Shape, header []byte) error {
	if header[0] != 0xff { // decoders skip to the next marker
		s.skipTo, s.need, s.next = 0xff, 2, jpegMarker
		return nil
	}
	switch marker := header[1]; {
	case marker == 0xff: // the first FF fills, the second begins the marker
		s.need, s.next = 1, func(s *Shape, next []byte) error {
			return jpegMarker(s, []byte{0xff, next[0]})
		}
	case marker == 0xd9:
		if s.width == 0 {
			return brokenError("a JPEG without a picture")
		}
		s.ended = true
	case marker == 0x00, marker == 0x01, marker >= 0xd0 && marker <= 0xd7: // data, or markers without a length
		s.skipTo, s.need, s.next = 0xff, 2, jpegMarker
	case marker == 0xd8:
		return brokenError("a JPEG that begins again")
	case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
		s.need, s.next = 7, jpegFrame
	default:
		s.need, s.next = 2, jpegSegment
	}
	return nil
}

func jpegSegment(s *Shape, header []byte) error {
	length := int64(binary.BigEndian.Uint16(header))
	if length < 2 {
		return brokenError("a segment of a JPEG that is too short")
	}
	s.skip, s.skipTo, s.need, s.next = length-2, 0xff, 2, jpegMarker
	return nil
}

// jpegFrame reads the size of the picture: length, precision, height, width.
func jpegFrame(s *Shape, header []byte) error {
	length := int64(binary.BigEndian.Uint16(header))
	height, width := binary.BigEndian.Uint16(header[3:]), binary.BigEndian.Uint16(header[5:])
	if length < 8 || width == 0 || height == 0 {
		return brokenError("a JPEG of no size")
	}
	s.recordSize(int(width), int(height))
	s.skip, s.skipTo, s.need, s.next = length-7, 0xff, 2, jpegMarker
	return nil
}

// A GIF has a screen, extensions (21) and images (2C), each with a chain of data blocks, and a
// trailer (3B).

func gifScreen(s *Shape, header []byte) error {
	width, height := binary.LittleEndian.Uint16(header[6:]), binary.LittleEndian.Uint16(header[8:])
	if width == 0 || height == 0 {
		return brokenError("a GIF of no size")
	}
	s.recordSize(int(width), int(height))
	s.skip, s.need, s.next = colorTable(header[10]), 1, gifBlock
	return nil
}

// colorTable returns the length in bytes of the color table described by flags.
func colorTable(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

func gifBlock(s *Shape, header []byte) error {
	switch header[0] {
	case 0x3b:
		s.ended = true
	case 0x21:
		s.skip, s.need, s.next = 1, 1, gifData // label
	case 0x2c:
		s.need, s.next = 9, gifImage
	default:
		return brokenError("an unknown block in a GIF")
	}
	return nil
}

func gifImage(s *Shape, header []byte) error {
	x, y := binary.LittleEndian.Uint16(header), binary.LittleEndian.Uint16(header[2:])
	width, height := binary.LittleEndian.Uint16(header[4:]), binary.LittleEndian.Uint16(header[6:])
	s.recordSize(int(x)+int(width), int(y)+int(height))
	s.skip, s.need, s.next = colorTable(header[8])+1, 1, gifData // table, code size
	return nil
}

func gifData(s *Shape, header []byte) error {
	s.need = 1
	if s.skip = int64(header[0]); s.skip == 0 {
		s.next = gifBlock
	}
	return nil
}
