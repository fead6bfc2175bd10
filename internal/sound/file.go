package sound

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	// windowSize is the size of the buffer in bytes.
	windowSize = 64 << 10
	// maxSteps bounds the headers to read of one file: 30 hours of MP3.
	maxSteps = 4 << 20
)

// errSteps reports a file with more headers than maxSteps.
var errSteps = errors.New("the file has too many headers")

// file reads small pieces of a file through one buffer.
type file struct {
	from   io.ReaderAt
	size   int64
	window []byte
	start  int64 // offset of window
	steps  int
	err    error // of the reader, or errSteps
}

// bytes returns n bytes at an offset, or nil if the file does not have them. The result is valid
// until the next call. n is at most windowSize.
func (f *file) bytes(at int64, n int) []byte {
	if f.steps++; f.steps > maxSteps {
		f.err = errSteps
	}
	if f.err != nil || at < 0 || at > f.size-int64(n) {
		return nil
	}
	if at < f.start || at+int64(n) > f.start+int64(len(f.window)) {
		if f.window == nil {
			f.window = make([]byte, windowSize)
		}
		f.start, f.window = at, f.window[:min(windowSize, f.size-at)]
		if _, err := f.from.ReadAt(f.window, at); err != nil && !errors.Is(err, io.EOF) {
			f.err = err
			return nil
		}
	}
	return f.window[at-f.start:][:n]
}

// has reports whether the file has a text at an offset.
func (f *file) has(at int64, text string) bool { return string(f.bytes(at, len(text))) == text }

// skipID3 returns the offset after an ID3 tag at the start of the file, or 0.
func (f *file) skipID3() int64 {
	const header = 10
	h := f.bytes(0, header)
	if h == nil || string(h[:3]) != "ID3" {
		return 0
	}
	size := int64(h[6]&0x7f)<<21 | int64(h[7]&0x7f)<<14 | int64(h[8]&0x7f)<<7 | int64(h[9]&0x7f)
	if hasFooter := h[5]&0x10 != 0; hasFooter {
		size += header
	}
	return header + size
}

// wav reads a RIFF or RF64 file. It takes all bytes up to the end of the file for sound, because
// recorders that write to a pipe cannot put the length into the header.
func (f *file) wav() stream {
	if !f.has(8, "WAVE") {
		return stream{}
	}
	var bytesPerSecond int64
	for at := int64(12); ; {
		h := f.bytes(at, 8)
		if h == nil {
			return stream{}
		}
		id, length := string(h[:4]), int64(binary.LittleEndian.Uint32(h[4:]))
		at += 8
		switch id {
		case "fmt ":
			format := f.bytes(at, int(min(max(length, 16), 20)))
			if format == nil {
				return stream{}
			}
			bytesPerSecond = wavRate(format)
		case "data":
			payload := f.size - at
			return stream{duration: ticks(payload, bytesPerSecond), bitRate: bytesPerSecond * 8, bytes: payload}
		}
		at += length + length%2
	}
}

// wavRate returns the bytes per second of a format chunk. Like a decoder, it computes the rate of
// known formats, because the rate in the header may be anything.
func wavRate(format []byte) int64 {
	tag, channels := binary.LittleEndian.Uint16(format), int64(binary.LittleEndian.Uint16(format[2:]))
	samples, rate := int64(binary.LittleEndian.Uint32(format[4:])), int64(binary.LittleEndian.Uint32(format[8:]))
	block, bits := int64(binary.LittleEndian.Uint16(format[12:])), int64(binary.LittleEndian.Uint16(format[14:]))
	switch tag {
	case 1, 3, 6, 7, 0xfffe: // integers, floats, A-law, mu-law, extensible
		return samples * channels * ((bits + 7) / 8)
	case 2, 0x11, 0x31: // blocks of ADPCM, IMA ADPCM, GSM
		if len(format) < 20 {
			return 0
		}
		if perBlock := int64(binary.LittleEndian.Uint16(format[18:])); perBlock > 0 {
			return samples * block / perBlock
		}
	}
	return rate
}

// flac reads the first metadata block of a FLAC file from an offset on.
func (f *file) flac(start int64) stream {
	h := f.bytes(start, 26) // the mark, a block header and STREAMINFO up to the number of samples
	if h == nil || h[4]&0x7f != 0 {
		return stream{}
	}
	rate := int64(h[18])<<12 | int64(h[19])<<4 | int64(h[20])>>4
	samples := int64(h[21]&0x0f)<<32 | int64(binary.BigEndian.Uint32(h[22:]))
	return stream{duration: ticks(samples, rate)}
}
