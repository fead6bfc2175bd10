package format

import (
	"encoding/binary"
	"math"
	"slices"
)

// A WebP is one RIFF chunk. Its first inner chunk has the size.

func webpHeader(s *Shape, header []byte) error {
	size := int64(binary.LittleEndian.Uint32(header[4:]))
	if size < 22 { // the number of bytes read so far
		return brokenError("a WebP that is too short")
	}
	data := header[20:]
	switch string(header[12:16]) {
	case "VP8X": // flags, reserved, width-1 and height-1 in 24 bits each
		s.recordSize(int(u24(data[4:]))+1, int(u24(data[7:]))+1)
	case "VP8L": // signature, width-1 and height-1 in 14 bits each
		if data[0] != 0x2f {
			return brokenError("a lossless WebP without its signature")
		}
		bits := binary.LittleEndian.Uint32(data[1:])
		s.recordSize(int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1)
	default: // VP8: frame tag, start code, width and height in 14 bits each
		if data[3] != 0x9d || data[4] != 0x01 || data[5] != 0x2a {
			return brokenError("a WebP without a key frame")
		}
		width, height := int(binary.LittleEndian.Uint16(data[6:])&0x3fff), int(binary.LittleEndian.Uint16(data[8:])&0x3fff)
		if width == 0 || height == 0 {
			return brokenError("a WebP of no size")
		}
		s.recordSize(width, height)
	}
	s.skip, s.ended = size-22, true
	return nil
}

func u24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// An MP4 or MOV has boxes of length, type and data. moov is the table of contents, mdat the frames.

func boxHeader(s *Shape, header []byte) error {
	size := int64(binary.BigEndian.Uint32(header))
	s.need, s.next = 8, boxHeader
	switch string(header[4:]) {
	case "moov":
		s.sawMovie = true
	case "mdat":
		s.sawData = true
	}
	switch {
	case s.sawMovie && s.sawData && slices.ContainsFunc(header[4:], unprintable):
		s.skip, s.ended = -8, true // appended data or padding
	case size == 0:
		s.unbounded = true
	case size == 1:
		s.mayEnd = false
		s.next = boxLength
	case size < 8:
		return brokenError("a box that is too short")
	default:
		s.skip = size - 8
	}
	return nil
}

// unprintable reports whether b cannot be part of a box name. The copyright sign can.
func unprintable(b byte) bool { return (b < ' ' || b > '~') && b != 0xa9 }

// boxLength reads a 64-bit box length.
func boxLength(s *Shape, header []byte) error {
	size := binary.BigEndian.Uint64(header)
	if size < 16 || size > math.MaxInt64 {
		return brokenError("a box of impossible length")
	}
	s.mayEnd = true
	s.skip, s.need, s.next = int64(size)-16, 8, boxHeader
	return nil
}

// A WebM has an EBML header and a segment, often of unknown length.

func ebmlHeader(s *Shape, header []byte) error {
	return vint(s, header[4:], func(s *Shape, length int64) error {
		if length < 0 || length > HeadSize {
			return brokenError("a WebM header of impossible length")
		}
		s.skip, s.need, s.next = length, 5, webmSegment
		return nil
	})
}

func webmSegment(s *Shape, header []byte) error {
	if string(header[:4]) != "\x18\x53\x80\x67" {
		return brokenError("a WebM without a segment")
	}
	s.sawMovie = true
	return vint(s, header[4:], func(s *Shape, length int64) error {
		if length < 0 {
			s.unbounded = true
			return nil
		}
		s.skip, s.ended = length, true
		return nil
	})
}

// vint reads a length of one or more bytes and passes the length to next, or -1 if the length is
// unknown. The first byte determines the number of following bytes.
func vint(s *Shape, first []byte, next func(s *Shape, length int64) error) error {
	width, mask := 1, byte(0x80)
	for mask != 0 && first[0]&mask == 0 {
		width, mask = width+1, mask>>1
	}
	if mask == 0 {
		return brokenError("a WebM length of more than 8 bytes")
	}
	value := int64(first[0] &^ mask)
	if width == 1 {
		if value == int64(mask-1) {
			value = -1
		}
		return next(s, value)
	}
	unknown := first[0]&(mask-1) == mask-1
	s.need, s.next = width-1, func(s *Shape, rest []byte) error {
		for _, b := range rest {
			value = value<<8 | int64(b)
			unknown = unknown && b == 0xff
		}
		if unknown {
			value = -1
		}
		return next(s, value)
	}
	return nil
}
