package sound

import (
	"encoding/binary"
	"math"
	"time"
)

// oggStream is a logical stream of an Ogg file.
type oggStream struct {
	rate int64 // positions per second
	skip int64 // positions before the sound begins
	end  int64 // the highest position
}

// ogg reads all pages of an Ogg file (RFC 3533) and adds up the durations of its streams with Opus
// or Vorbis.
func (f *file) ogg() stream {
	const header = 27
	var streams []*oggStream
	current := map[uint32]*oggStream{} // the newest stream of a serial number
	for at := int64(0); f.has(at, "OggS"); {
		h := f.bytes(at, header)
		if h == nil {
			break
		}
		isFirst, position := h[5]&2 != 0, int64(binary.LittleEndian.Uint64(h[6:]))
		serial, segments := binary.LittleEndian.Uint32(h[14:]), int(h[26])
		table := f.bytes(at+header, segments)
		if table == nil {
			break
		}
		at += header + int64(segments)
		length := int64(0)
		for _, n := range table {
			length += int64(n)
		}
		if isFirst && len(streams) < maxOggStreams {
			if s := f.oggHead(at); s != nil {
				streams, current[serial] = append(streams, s), s
			}
		}
		if s := current[serial]; s != nil && position > s.end && position < math.MaxInt64 {
			s.end = position
		}
		at += length
	}
	var sum time.Duration
	for _, s := range streams {
		sum = min(sum+ticks(s.end-s.skip, s.rate), maxDuration)
	}
	return stream{duration: sum}
}

// maxOggStreams bounds the streams of a file.
const maxOggStreams = 1000

// oggHead reads the first packet of a stream, or returns nil if it is neither Opus nor Vorbis.
func (f *file) oggHead(at int64) *oggStream {
	if f.has(at, "OpusHead") {
		if h := f.bytes(at, 12); h != nil {
			return &oggStream{rate: 48_000, skip: int64(binary.LittleEndian.Uint16(h[10:]))}
		}
	}
	if f.has(at, "\x01vorbis") {
		if h := f.bytes(at, 16); h != nil {
			return &oggStream{rate: int64(binary.LittleEndian.Uint32(h[12:]))}
		}
	}
	return nil
}
