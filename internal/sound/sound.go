// Package sound owns the durations of sound files, read from their headers, and the headers of new WAV files.
//
// Invariants: nothing is decoded; the memory is one buffer of windowSize, whatever the file's size;
// the work is bounded by maxSteps; a duration is never shorter or longer than the file's bytes allow.
package sound

import (
	"io"
	"time"
)

const (
	// minBitRate is the lowest rate of speech, in Opus (RFC 6716), in bits per second.
	minBitRate = 6_000
	// maxBitRate is the highest rate to expect of formats without a rate in the header.
	maxBitRate = 5_000_000
	// maxMP3BitRate is the highest rate of an MP3.
	maxMP3BitRate = 320_000
)

// Longest returns the longest duration that a file of size bytes can have.
func Longest(size int64) time.Duration { return atRate(size, minBitRate) }

// Duration returns the duration of a file of size bytes by its headers: WAV, FLAC, MP3, Ogg with
// Opus or Vorbis, MP4 or M4A, and WebM. Headers can lie, so the duration is at least what the
// file's bytes hold at the format's highest rate, and at most Longest. ok is false if the format or
// the duration is unknown.
func Duration(from io.ReaderAt, size int64) (d time.Duration, ok bool) {
	f := &file{from: from, size: size}
	var s stream
	switch start := f.skipID3(); {
	case f.has(0, "RIFF"), f.has(0, "RF64"):
		s = f.wav()
	case f.has(start, "fLaC"):
		s = f.flac(start)
	case f.has(0, "OggS"):
		s = f.ogg()
	case f.has(4, "ftyp"):
		s = f.mp4()
	case f.has(0, "\x1aE\xdf\xa3"):
		s = f.webm()
	default:
		s = f.mp3(start)
	}
	if f.err != nil || s.duration <= 0 {
		return 0, false
	}
	if s.bitRate == 0 {
		s.bitRate, s.bytes = maxBitRate, size
	}
	return min(max(s.duration, atRate(s.bytes, s.bitRate)), Longest(size)), true
}

// stream has the values in the headers of a file.
type stream struct {
	duration time.Duration // 0 if unknown
	bitRate  int64         // highest rate, in bits per second; 0 means maxBitRate
	bytes    int64         // bytes that may be sound, if bitRate is set
}

// atRate returns the duration of a number of bytes at a rate in bits per second.
func atRate(bytes, bitRate int64) time.Duration { return ticks(bytes*8, bitRate) }

// maxDuration bounds the durations in headers, which may be wrong.
const maxDuration = 366 * 24 * time.Hour

// ticks returns the duration of n ticks, at most maxDuration. It returns 0 if n or perSecond is not
// positive.
func ticks(n, perSecond int64) time.Duration {
	if n <= 0 || perSecond <= 0 {
		return 0
	}
	seconds, rest := n/perSecond, n%perSecond
	if seconds >= int64(maxDuration/time.Second) {
		return maxDuration
	}
	return time.Duration(seconds)*time.Second + time.Duration(float64(rest)/float64(perSecond)*float64(time.Second))
}
