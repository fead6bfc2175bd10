package drawing

import (
	"bytes"
	"encoding/binary"
)

// film is a finished stream of pictures.
type film struct {
	width, height int // in pixels
	rate          int // pictures a second
	sequence, set []byte
	pictures      [][]byte
	keys          []uint32 // numbers of key pictures, from 1
}

// Units of time a second: of a file, and of a picture.
const (
	fileScale    = 1000
	pictureScale = 512
)

// mp4 puts the film into a file whose index comes first, so that it plays
// while it is being loaded.
func (f *film) mp4() []byte {
	head := box("ftyp", []byte("isom"), numbers(0x200), []byte("isomiso2avc1mp41"))
	index := f.index(0)
	index = f.index(uint32(len(head) + len(index) + 8)) // as long as before
	size := 8
	for _, p := range f.pictures {
		size += 4 + len(p)
	}
	out := make([]byte, 0, len(head)+len(index)+size)
	out = append(append(out, head...), index...)
	out = binary.BigEndian.AppendUint32(out, uint32(size))
	out = append(out, "mdat"...)
	for _, p := range f.pictures {
		out = binary.BigEndian.AppendUint32(out, uint32(len(p)))
		out = append(out, p...)
	}
	return out
}

// index is the file's index of pictures that begin at a place.
func (f *film) index(at uint32) []byte {
	n := uint32(len(f.pictures))
	scale := uint32(f.rate * pictureScale)
	length := uint32(len(f.pictures) * fileScale / f.rate)
	sizes := make([]uint32, 0, len(f.pictures)+3)
	sizes = append(sizes, 0, 0, n)
	for _, p := range f.pictures {
		sizes = append(sizes, uint32(4+len(p)))
	}
	w, h := uint32(f.width), uint32(f.height)
	asIs := numbers(1<<16, 0, 0, 0, 1<<16, 0, 0, 0, 1<<30)
	return box("moov",
		box("mvhd", numbers(0, 0, 0, fileScale, length, 1<<16, 1<<24, 0, 0), asIs, numbers(0, 0, 0, 0, 0, 0, 2)),
		box("trak",
			box("tkhd", numbers(3, 0, 0, 1, 0, length, 0, 0, 0, 0), asIs, numbers(w<<16, h<<16)),
			box("mdia",
				box("mdhd", numbers(0, 0, 0, scale, n*pictureScale, 0x55C4<<16)), // no language
				box("hdlr", numbers(0, 0), []byte("vide"), numbers(0, 0, 0), []byte("video\x00")),
				box("minf",
					box("vmhd", numbers(1, 0, 0)),
					box("dinf", box("dref", numbers(0, 1), box("url ", numbers(1)))), // in this file
					box("stbl",
						box("stsd", numbers(0, 1), f.format()),
						box("stts", numbers(0, 1, n, pictureScale)),
						box("stss", numbers(0, uint32(len(f.keys))), numbers(f.keys...)),
						box("stsc", numbers(0, 1, 1, n, 1)),
						box("stsz", numbers(sizes...)),
						box("stco", numbers(0, 1, at)),
					)))))
}

// format describes how pictures are written.
func (f *film) format() []byte {
	const dots = 72 << 16 // an inch
	return box("avc1",
		numbers(0, 1, 0, 0, 0, 0, uint32(f.width)<<16|uint32(f.height), dots, dots, 0, 1<<16), make([]byte, 32-2),
		[]byte{0, 24, 0xFF, 0xFF},
		box("avcC", []byte{1, f.sequence[1], f.sequence[2], f.sequence[3], 0xFF, 0xE1}, short(f.sequence), []byte{1}, short(f.set)),
		box("colr", []byte("nclx"), []byte{0, 1, 0, 1, 0, 1, 0}),
		box("pasp", numbers(1, 1)))
}

// short is a unit after its length in two bytes.
func short(unit []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(unit))), unit...)
}

// box is a box of a file.
func box(kind string, content ...[]byte) []byte {
	body := bytes.Join(content, nil)
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 8+len(body)), uint32(8+len(body)))
	return append(append(out, kind...), body...)
}

// numbers are numbers of 32 bits.
func numbers(list ...uint32) []byte {
	out := make([]byte, 0, 4*len(list))
	for _, n := range list {
		out = binary.BigEndian.AppendUint32(out, n)
	}
	return out
}
