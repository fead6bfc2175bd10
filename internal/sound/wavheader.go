package sound

import (
	"encoding/binary"
	"math"
)

// UnknownLength is the length in the WAV header of a stream whose length is not known yet.
const UnknownLength = math.MaxUint32

// WAVHeader returns the header of a WAV file with one channel of 16-bit samples. rate is in samples per second,
// length in bytes.
func WAVHeader(rate, length uint32) []byte {
	const rest = 36 // bytes of the header after the length of the file
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), min(length, math.MaxUint32-rest)+rest)
	out = append(out, "WAVEfmt "...)
	for _, n := range []uint32{16, 1 | 1<<16, rate, 2 * rate, 2 | 16<<16} { // PCM, one channel, 16 bits
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return binary.LittleEndian.AppendUint32(append(out, "data"...), length)
}
