package sound

import (
	"encoding/binary"
	"math"
	"time"
)

// box is a box of an MP4 file (ISO/IEC 14496-12).
type box struct {
	name     string
	from, to int64 // of its content
}

// boxes calls visit for each box between two offsets.
func (f *file) boxes(from, to int64, visit func(box)) {
	for from < to {
		h := f.bytes(from, 8)
		if h == nil {
			return
		}
		b := box{name: string(h[4:]), from: from + 8}
		length := int64(binary.BigEndian.Uint32(h))
		switch length {
		case 0: // up to the end
			length = to - from
		case 1:
			if h = f.bytes(b.from, 8); h == nil {
				return
			}
			length = int64(min(binary.BigEndian.Uint64(h), math.MaxInt64))
			b.from += 8
		}
		if length < b.from-from || length > to-from {
			length = to - from // cut off
		}
		b.to = from + length
		visit(b)
		from = b.to
	}
}

// mp4 returns the duration of the longest track with sound, or else of the whole file. The duration
// of a track in fragments is the sum of its fragments.
func (f *file) mp4() stream {
	var whole, sound, fragmented time.Duration
	scales := map[uint32]int64{} // ticks per second by track
	lengths := map[uint32]int64{}
	f.boxes(0, f.size, func(top box) {
		switch top.name {
		case "moov":
			f.boxes(top.from, top.to, func(b box) {
				switch b.name {
				case "mvhd":
					whole, _ = f.mp4Header(b)
				case "trak":
					t := f.track(b)
					if t.isSound {
						sound, scales[t.id] = max(sound, t.duration), t.scale
					}
				}
			})
		case "moof":
			f.fragment(top, lengths)
		}
	})
	for id, n := range lengths {
		fragmented = max(fragmented, ticks(n, scales[id]))
	}
	if sound = max(sound, fragmented); sound > 0 {
		return stream{duration: sound}
	}
	return stream{duration: whole}
}

// track has the values in the headers of a track.
type track struct {
	id       uint32
	isSound  bool
	duration time.Duration
	scale    int64 // ticks per second
}

func (f *file) track(b box) (t track) {
	f.boxes(b.from, b.to, func(b box) {
		switch b.name {
		case "tkhd":
			at := b.from + 12
			if h := f.bytes(b.from, 1); h != nil && h[0] == 1 {
				at = b.from + 20
			}
			if h := f.bytes(at, 4); h != nil {
				t.id = binary.BigEndian.Uint32(h)
			}
		case "mdia":
			f.boxes(b.from, b.to, func(b box) {
				switch b.name {
				case "mdhd":
					t.duration, t.scale = f.mp4Header(b)
				case "hdlr":
					t.isSound = f.has(b.from+8, "soun")
				}
			})
		}
	})
	return t
}

// mp4Header reads the duration and the ticks per second of a movie header or media header. An unknown
// duration is 0.
func (f *file) mp4Header(b box) (time.Duration, int64) {
	h := f.bytes(b.from, 32)
	if h == nil {
		return 0, 0
	}
	scale, n := int64(binary.BigEndian.Uint32(h[12:])), int64(binary.BigEndian.Uint32(h[16:]))
	if n == math.MaxUint32 {
		n = 0
	}
	if h[0] == 1 {
		scale = int64(binary.BigEndian.Uint32(h[20:]))
		n = int64(binary.BigEndian.Uint64(h[24:]) & math.MaxInt64)
		if n == math.MaxInt64 {
			n = 0
		}
	}
	return ticks(n, scale), scale
}

// fragment adds the ticks of a movie fragment to those of its tracks.
func (f *file) fragment(moof box, lengths map[uint32]int64) {
	f.boxes(moof.from, moof.to, func(b box) {
		if b.name != "traf" {
			return
		}
		var id uint32
		var usual int64 // ticks of a sample without a duration of its own
		f.boxes(b.from, b.to, func(b box) {
			switch b.name {
			case "tfhd":
				id, usual = f.fragmentHeader(b)
			case "trun":
				if len(lengths) < maxTracks || lengths[id] > 0 {
					lengths[id] = min(lengths[id]+f.run(b, usual), math.MaxInt64/2)
				}
			}
		})
	})
}

// maxTracks bounds the tracks of a file in fragments.
const maxTracks = 100

// fragmentHeader returns the track of a fragment and the default duration of its samples, in ticks.
func (f *file) fragmentHeader(b box) (id uint32, usual int64) {
	h := f.bytes(b.from, 8)
	if h == nil {
		return 0, 0
	}
	flags, at := h[3], b.from+8
	id = binary.BigEndian.Uint32(h[4:])
	if flags&0x01 != 0 { // base data offset
		at += 8
	}
	if flags&0x02 != 0 { // sample description
		at += 4
	}
	if flags&0x08 != 0 {
		if h = f.bytes(at, 4); h != nil {
			usual = int64(binary.BigEndian.Uint32(h))
		}
	}
	return id, usual
}

// run returns the ticks of a run of samples.
func (f *file) run(b box, usual int64) int64 {
	h := f.bytes(b.from, 8)
	if h == nil {
		return 0
	}
	hasOffset, hasFirstFlags := h[3]&1 != 0, h[3]&4 != 0
	perSample, count := h[2]&0x0f, int64(binary.BigEndian.Uint32(h[4:]))
	if perSample&1 == 0 {
		return count * usual
	}
	at, size := b.from+8, int64(0)
	if hasOffset {
		at += 4
	}
	if hasFirstFlags {
		at += 4
	}
	for bit := perSample; bit > 0; bit >>= 1 {
		size += 4 * int64(bit&1)
	}
	sum := int64(0)
	for ; count > 0 && at < b.to; count, at = count-1, at+size {
		if h = f.bytes(at, 4); h == nil {
			break
		}
		sum += int64(binary.BigEndian.Uint32(h))
	}
	return sum
}
