package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Shape follows the outer structure of a file as its bytes pass, enough to find the size of a
// picture and whether the file is complete, without decoding. It is a state machine that skips
// bytes, searches for a byte, or collects a header for the format's next step.
type Shape struct {
	skip  int64 // first skip this many bytes
	until int   // then, unless -1, skip everything before this byte
	need  int   // then collect this many bytes
	have  []byte
	next  step // and pass them to this step
	// open is true if the file may end here.
	open bool
	// toEnd is true if the rest belongs to the current part, whatever its length.
	toEnd bool
	// ended is true if the file has ended. end is its length: the bytes after skip, or from a
	// negative skip on, do not belong to the file.
	ended bool
	end   int64

	offset        int64 // number of bytes so far
	width, height int   // pixels of the largest picture; 0 if unknown
	sawMovie      bool  // found a video's table of contents
	sawData       bool  // found a video's frames
}

// step reads a collected header and sets the next state. It must not retain header.
type step func(s *Shape, header []byte) error

// NewShape returns the state machine for a content type known to Sniff.
func NewShape(contentType string) *Shape {
	s := &Shape{until: -1}
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
		s.need, s.next, s.open = 8, boxHeader, true
	}
	return s
}

// damaged returns the error for a file that contradicts itself.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

// Feed takes the next bytes of the file. An error wraps ErrBroken; after an error Feed must not be
// called again.
func (s *Shape) Feed(p []byte) error {
	start := s.offset
	s.offset += int64(len(p))
	rest := p
	for len(rest) > 0 && !s.ended && !s.toEnd {
		switch {
		case s.skip > 0:
			n := min(s.skip, int64(len(rest)))
			s.skip -= n
			rest = rest[n:]
			continue
		case s.until >= 0:
			i := bytes.IndexByte(rest, byte(s.until))
			if i < 0 {
				return nil
			}
			rest, s.until = rest[i:], -1
			continue
		case s.need > len(s.have):
			n := min(s.need-len(s.have), len(rest))
			s.have = append(s.have, rest[:n]...)
			rest = rest[n:]
			if s.need > len(s.have) {
				return nil
			}
		}
		header := s.have
		s.have = s.have[:0]
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
		return damaged("the last %d bytes are missing", s.end-s.offset)
	case s.ended, s.toEnd:
	case !s.open, s.skip > 0:
		return damaged("it ends after %d bytes, within something", s.offset)
	case !s.sawMovie:
		return damaged("a video without a table of contents")
	case len(s.have) > 0 && !s.sawData:
		return damaged("it ends after %d bytes, within the head of a box", s.offset)
	}
	return nil
}

// grow records the size of a picture.
func (s *Shape) grow(width, height int) {
	s.width, s.height = max(s.width, width), max(s.height, height)
}

// PNG: chunks of length, type, data and checksum; the first is IHDR, the last
// IEND.

func pngFirst(s *Shape, header []byte) error {
	if string(header[4:]) != "IHDR" || binary.BigEndian.Uint32(header) != 13 {
		return damaged("a PNG without a header")
	}
	s.need, s.next = 8, func(s *Shape, size []byte) error {
		width, height := binary.BigEndian.Uint32(size), binary.BigEndian.Uint32(size[4:])
		if width == 0 || height == 0 || width > 1<<31-1 || height > 1<<31-1 {
			return damaged("a PNG of no size")
		}
		s.grow(int(width), int(height))
		s.skip, s.need, s.next = 5+4, 8, pngChunk
		return nil
	}
	return nil
}

func pngChunk(s *Shape, header []byte) error {
	length := binary.BigEndian.Uint32(header)
	if length > 1<<31-1 {
		return damaged("a chunk of a PNG that is too long")
	}
	s.skip = int64(length) + 4
	s.ended = string(header[4:]) == "IEND"
	return nil
}

// JPEG: segments begin with FF and a marker, most with a length; then the entropy-coded data, with
// FF followed by 00 or a restart marker; EOI is the end.

func jpegMarker(s *Shape, header []byte) error {
	if header[0] != 0xff { // decoders skip to the next marker
		s.until, s.need, s.next = 0xff, 2, jpegMarker
		return nil
	}
	switch marker := header[1]; {
	case marker == 0xff: // a fill byte: the second FF begins the marker
		s.need, s.next = 1, func(s *Shape, next []byte) error {
			return jpegMarker(s, []byte{0xff, next[0]})
		}
	case marker == 0xd9:
		if s.width == 0 {
			return damaged("a JPEG without a picture")
		}
		s.ended = true
	case marker == 0x00, marker == 0x01, marker >= 0xd0 && marker <= 0xd7: // data, or markers without a length
		s.until, s.need, s.next = 0xff, 2, jpegMarker
	case marker == 0xd8:
		return damaged("a JPEG that begins again")
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
		return damaged("a segment of a JPEG that is too short")
	}
	s.skip, s.until, s.need, s.next = length-2, 0xff, 2, jpegMarker
	return nil
}

// jpegFrame reads the size of the picture: length, precision, height, width.
func jpegFrame(s *Shape, header []byte) error {
	length := int64(binary.BigEndian.Uint16(header))
	height, width := binary.BigEndian.Uint16(header[3:]), binary.BigEndian.Uint16(header[5:])
	if length < 8 || width == 0 || height == 0 {
		return damaged("a JPEG of no size")
	}
	s.grow(int(width), int(height))
	s.skip, s.until, s.need, s.next = length-7, 0xff, 2, jpegMarker
	return nil
}

// GIF: a screen, then blocks: extensions (21) and images (2C), each with a
// chain of data blocks, up to the trailer (3B).

func gifScreen(s *Shape, header []byte) error {
	width, height := binary.LittleEndian.Uint16(header[6:]), binary.LittleEndian.Uint16(header[8:])
	if width == 0 || height == 0 {
		return damaged("a GIF of no size")
	}
	s.grow(int(width), int(height))
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
		return damaged("an unknown block in a GIF")
	}
	return nil
}

func gifImage(s *Shape, header []byte) error {
	left, top := binary.LittleEndian.Uint16(header), binary.LittleEndian.Uint16(header[2:])
	width, height := binary.LittleEndian.Uint16(header[4:]), binary.LittleEndian.Uint16(header[6:])
	s.grow(int(left)+int(width), int(top)+int(height))
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
