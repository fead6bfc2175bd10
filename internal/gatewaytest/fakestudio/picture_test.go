package fakestudio

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"testing"
)

func TestPicture(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for n := range 300 {
		data := Picture(n)
		if other, ok := seen[string(data)]; ok {
			t.Fatalf("pictures %d and %d are the same", n, other)
		}
		seen[string(data)] = n
		if !bytes.Equal(data, Picture(n)) {
			t.Fatalf("picture %d is another one the second time", n)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil || img.Bounds().Dx() != 64 || img.Bounds().Dy() != 48 {
			t.Fatalf("picture %d: %v", n, err)
		}
	}
}

// TestClip checks what a player needs: boxes that fill the file, the index
// before the data, and a chunk that begins where the index says.
func TestClip(t *testing.T) {
	t.Parallel()
	clip := Clip()
	var kinds []string
	data := 0
	for at := 0; at < len(clip); {
		size := int(binary.BigEndian.Uint32(clip[at:]))
		if size < 8 || at+size > len(clip) {
			t.Fatalf("a box at %d of %d bytes", at, size)
		}
		kind := string(clip[at+4 : at+8])
		if kinds = append(kinds, kind); kind == "mdat" {
			data = at + 8
		}
		at += size
	}
	if len(kinds) != 3 || kinds[0] != "ftyp" || kinds[1] != "moov" || kinds[2] != "mdat" {
		t.Fatalf("boxes %v", kinds)
	}
	index := bytes.Index(clip, []byte("stco"))
	if at := int(binary.BigEndian.Uint32(clip[index+12:])); at != data {
		t.Errorf("the index says that the data begins at %d, it does at %d", at, data)
	}
	if len(clip) > 2000 {
		t.Errorf("%d bytes", len(clip))
	}
	if bytes.Contains(clip[data+4:], []byte{0, 0, 0, 0}) || bytes.Contains(clip[data+4:], []byte{0, 0, 1, 0}) {
		t.Error("the data has bytes that a unit must not have")
	}
}
