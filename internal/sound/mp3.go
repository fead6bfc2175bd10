package sound

import "encoding/binary"

// frame is the header of a frame of MPEG audio.
type frame struct {
	version, layer int // 1 (MPEG 1), 2 or 3 (2.5); layer 1 to 3
	rate           int64
	samples        int64
	size           int64 // bytes of the frame with its header
	mono           bool
}

var (
	// bitRates has kbit/s by version (MPEG 1, or 2 and 2.5), layer and index, from index 1 on.
	bitRates = [2][3][14]int64{
		{
			{32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
			{32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
			{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
		},
		{
			{32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
			{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
			{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
		},
	}
	sampleRates = [3]int64{44_100, 48_000, 32_000} // of MPEG 1; half of it in MPEG 2, a quarter in 2.5
)

// parseFrame reads the 4 bytes of a frame's header. ok is false if h is not a header, or the header
// of a frame without a fixed length (free format).
func parseFrame(h []byte) (f frame, ok bool) {
	if h[0] != 0xff || h[1]&0xe0 != 0xe0 {
		return frame{}, false
	}
	version, layer, bitRate, rate := h[1]>>3&3, h[1]>>1&3, h[2]>>4, h[2]>>2&3
	if version == 1 || layer == 0 || bitRate == 0 || bitRate == 15 || rate == 3 {
		return frame{}, false
	}
	f = frame{version: map[byte]int{3: 1, 2: 2, 0: 3}[version], layer: 4 - int(layer), mono: h[3]>>6 == 3}
	f.rate = sampleRates[rate] >> (f.version - 1)
	later := min(f.version-1, 1)
	bits := bitRates[later][f.layer-1][bitRate-1] * 1000
	padding := int64(h[2] >> 1 & 1)
	switch {
	case f.layer == 1:
		f.samples = 384
		f.size = (12*bits/f.rate + padding) * 4
	case f.layer == 3 && later == 1:
		f.samples = 576
		f.size = 72*bits/f.rate + padding
	default:
		f.samples = 1152
		f.size = 144*bits/f.rate + padding
	}
	return f, true
}

// mp3 reads MPEG audio from an offset on. It counts the frames, unless the first frame has their
// number.
func (f *file) mp3(at int64) stream {
	first, at, ok := f.firstFrame(at)
	if !ok {
		return stream{}
	}
	s := stream{bitRate: maxMP3BitRate, bytes: f.size}
	if frames := f.frameCount(first, at); frames > 0 {
		s.duration = ticks(frames*first.samples, first.rate)
		return s
	}
	var samples int64
	for {
		h := f.bytes(at, 4)
		if h == nil {
			break
		}
		next, ok := parseFrame(h)
		if !ok || next.rate != first.rate {
			at++ // a tag or damage
			continue
		}
		samples += next.samples
		at += next.size
	}
	s.duration = ticks(samples, first.rate)
	return s
}

// maxGarbage is the number of bytes before the first frame to search.
const maxGarbage = 64 << 10

// firstFrame finds the first frame followed by another one, from an offset on.
func (f *file) firstFrame(at int64) (first frame, start int64, ok bool) {
	for end := at + maxGarbage; at < end; at++ {
		h := f.bytes(at, 4)
		if h == nil {
			return frame{}, 0, false
		}
		if first, ok = parseFrame(h); !ok {
			continue
		}
		if at+first.size == f.size {
			return first, at, true
		}
		if h = f.bytes(at+first.size, 4); h == nil {
			continue
		}
		if next, ok := parseFrame(h); ok && next.rate == first.rate && next.layer == first.layer {
			return first, at, true
		}
	}
	return frame{}, 0, false
}

// frameCount returns the number of frames by the Xing, Info or VBRI header in the first frame at an
// offset, or 0.
func (f *file) frameCount(first frame, at int64) int64 {
	const vbri = 36 // offset in the frame
	if f.has(at+vbri, "VBRI") {
		if h := f.bytes(at+vbri+14, 4); h != nil {
			return int64(binary.BigEndian.Uint32(h))
		}
	}
	xing := at + 4 // after the header and the side information
	switch {
	case first.version == 1 && !first.mono:
		xing += 32
	case first.version == 1 || !first.mono:
		xing += 17
	default:
		xing += 9
	}
	h := f.bytes(xing, 12)
	if h == nil || string(h[:4]) != "Xing" && string(h[:4]) != "Info" || h[7]&1 == 0 {
		return 0
	}
	return int64(binary.BigEndian.Uint32(h[8:]))
}
