package fakestudio

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
)

// Picture is a small valid PNG, 64 by 48 pixels, another one for each n. The
// same n is the same bytes.
func Picture(n int) []byte {
	ground := color.NRGBA{R: uint8(40 + n*53), G: uint8(90 + n*31), B: uint8(150 + n*17), A: 255}
	img := image.NewNRGBA(image.Rect(0, 0, 64, 48))
	for y := range 48 {
		for x := range 64 {
			img.SetNRGBA(x, y, ground)
		}
	}
	for bit := range 16 { // n in squares, so that no two numbers below 65,536 look the same
		if n>>bit&1 == 0 {
			continue
		}
		left, top := 4+bit%8*7, 12+bit/8*12
		for y := range 8 {
			for x := range 5 {
				img.SetNRGBA(left+x, top+y, color.NRGBA{R: 255, G: 255, B: 255, A: 255})
			}
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // a buffer takes everything, and the size is one that PNG has
	return out.Bytes()
}

// Clip is a small valid MP4: one second of a grey picture, 16 by 16 pixels, in
// H.264 baseline, with the index before the data. It is the same bytes always.
func Clip() []byte {
	sps := []byte{0x67, 66, 0xC0, 10} // baseline, level 1
	var b bits
	b.ue(0, 0, 2, 1) // id, bits of the frame number, order by decoding, one reference picture
	b.u(1, 0)
	b.ue(0, 0) // one macroblock wide and high
	b.u(4, 0b1100)
	sps = append(sps, b.end()...)

	pps := []byte{0x68}
	b = bits{}
	b.ue(0, 0)
	b.u(2, 0)
	b.ue(0, 0, 0)
	b.u(3, 0)
	b.ue(0, 0, 0)
	b.u(3, 0b100) // the slice says how edges are filtered
	pps = append(pps, b.end()...)

	key := []byte{0x65}
	b = bits{}
	b.ue(0, 7, 0) // first macroblock, intra slice, parameter set
	b.u(4, 0)
	b.ue(0) // id of the picture
	b.u(2, 0)
	b.ue(0, 1, 25) // quantizer as in the set, edges not filtered, macroblock of plain samples
	key = append(key, b.aligned()...)
	key = append(key, bytes.Repeat([]byte{128}, 384)...)
	key = append(key, 0x80)

	same := []byte{0x41}
	b = bits{}
	b.ue(0, 5, 0)
	b.u(4, 1) // frame number
	b.u(3, 0)
	b.ue(0, 1, 1) // as before: one macroblock is skipped
	same = append(same, b.end()...)

	data := append(sized(key), sized(same)...)
	movie := func(at int) []byte {
		return box("moov",
			box("mvhd", n32(0, 0, 0, 1000, 1000, 0x10000, 0x1000000, 0, 0), matrix(), n32(0, 0, 0, 0, 0, 0, 2)),
			box("trak",
				box("tkhd", n32(7, 0, 0, 1, 0, 1000, 0, 0, 0, 0), matrix(), n32(16<<16, 16<<16)),
				box("mdia",
					box("mdhd", n32(0, 0, 0, 1000, 1000, 0x55C40000)),
					box("hdlr", n32(0, 0), []byte("vide"), n32(0, 0, 0), []byte("video\x00")),
					box("minf",
						box("vmhd", n32(1, 0, 0)),
						box("dinf", box("dref", n32(0, 1), box("url ", n32(1)))),
						box("stbl",
							box("stsd", n32(0, 1), box("avc1", n32(0, 1, 0, 0, 0, 0, 16<<16|16, 72<<16, 72<<16, 0, 1<<16), make([]byte, 28),
								[]byte{0, 0, 0, 24, 0xFF, 0xFF},
								box("avcC", []byte{1, 66, 0xC0, 10, 0xFF, 0xE1, 0, byte(len(sps))}, sps, []byte{1, 0, byte(len(pps))}, pps))),
							box("stts", n32(0, 1, 2, 500)),
							box("stss", n32(0, 1, 1)),
							box("stsc", n32(0, 1, 1, 2, 1)),
							box("stsz", n32(0, 0, 2), n32(uint32(len(key)+4), uint32(len(same)+4))),
							box("stco", n32(0, 1, uint32(at))),
						)))))
	}
	head := box("ftyp", []byte("isom\x00\x00\x02\x00isomiso2avc1mp41"))
	at := len(head) + len(movie(0)) + 8
	return bytes.Join([][]byte{head, movie(at), box("mdat", data)}, nil)
}

// box is a box of an MP4 file.
func box(kind string, content ...[]byte) []byte {
	body := bytes.Join(content, nil)
	return bytes.Join([][]byte{n32(uint32(8 + len(body))), []byte(kind), body}, nil)
}

// n32 is numbers of 32 bits.
func n32(numbers ...uint32) []byte {
	var out []byte
	for _, n := range numbers {
		out = binary.BigEndian.AppendUint32(out, n)
	}
	return out
}

// matrix is the geometry of a picture that is shown as it is.
func matrix() []byte { return n32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000) }

// sized is a unit of a stream with its length.
func sized(unit []byte) []byte { return append(n32(uint32(len(unit))), unit...) }

// bits collects the bits of a unit.
type bits struct{ all []byte } // a bit a byte

// u adds a number of so many bits.
func (b *bits) u(width, value int) {
	for i := width - 1; i >= 0; i-- {
		b.all = append(b.all, byte(value>>i&1))
	}
}

// ue adds numbers in the exponential code of H.264.
func (b *bits) ue(values ...int) {
	for _, v := range values {
		width := 0
		for (v+1)>>(width+1) > 0 {
			width++
		}
		b.u(2*width+1, v+1)
	}
}

// end closes the unit: a bit that is set, and zeros up to the whole byte.
func (b *bits) end() []byte {
	b.u(1, 1)
	return b.aligned()
}

// aligned is the bits in bytes, filled up with zeros. None of the clip's units
// has two zero bytes in a row, which would have to be escaped.
func (b *bits) aligned() []byte {
	out := make([]byte, (len(b.all)+7)/8)
	for i, bit := range b.all {
		out[i/8] |= bit << (7 - i%8)
	}
	return out
}

// twoColours tells whether a file is a mask of black and white pixels alone.
func twoColours(file []byte) bool {
	mask, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return false
	}
	for y := range mask.Bounds().Dy() {
		for x := range mask.Bounds().Dx() {
			if g, ok := mask.At(x, y).(color.Gray); !ok || g.Y != 0 && g.Y != 0xFF {
				return false
			}
		}
	}
	return true
}
